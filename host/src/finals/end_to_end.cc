// Takes latency and wall_latency from the metrics of a configuration's trials.
#include "finals/end_to_end.h"

#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"

namespace dsat::host {
namespace {

// Means over the trials of a configuration.
struct Step {
  double wall_us = 0, engine_us = 0, samples = 0;
};

std::optional<Step> mean_step(const std::vector<Trial>& trials, const std::string& identity) {
  Step sum;
  double count = 0;
  for (const Trial& trial : trials) {
    if (trial.identity != identity) continue;
    const std::optional<EndToEnd> one = end_to_end_of(trial);
    if (!one) continue;
    sum.wall_us += one->wall_us;
    sum.engine_us += one->engine_us;
    sum.samples += config::number_at(trial.record.config, config::kTrainBatchKey).value_or(0);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return Step{sum.wall_us / count, sum.engine_us / count, sum.samples / count};
}

}  // namespace

std::optional<EndToEnd> end_to_end_of(const Trial& trial) {
  if (trial.record.outcome != Outcome::completed || trial.record.duplicate_of || trial.model_info) return std::nullopt;
  const double wall_us = config::number_at(trial.record.metrics, "wall_latency").value_or(0);
  const double engine_us = config::number_at(trial.record.metrics, "latency").value_or(0);
  if (wall_us <= 0 || engine_us <= 0) return std::nullopt;
  return EndToEnd{wall_us, engine_us, std::nullopt};
}

std::optional<EndToEnd> end_to_end_of_best(const std::vector<Trial>& trials, const std::string& baseline_identity,
                                           uint64_t best) {
  if (best >= trials.size()) return std::nullopt;
  const std::string& identity = trials[best].identity;
  const std::optional<Step> step = mean_step(trials, identity);
  if (!step) return std::nullopt;
  EndToEnd found{step->wall_us, step->engine_us, std::nullopt};
  if (baseline_identity.empty() || baseline_identity == identity) return found;
  const std::optional<Step> own = mean_step(trials, baseline_identity);
  if (own && own->samples > 0 && step->samples > 0) {
    found.ratio = step->samples / step->wall_us / (own->samples / own->wall_us);
  }
  return found;
}

}  // namespace dsat::host
