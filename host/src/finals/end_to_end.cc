// Takes latency and wall_latency from the metrics of a configuration's trials.
#include "finals/end_to_end.h"

#include "dsat/config/batch.h"

namespace dsat::host {
namespace {

double number_in(const Json& json, const char* key) {
  const auto it = json.is_object() ? json.find(key) : json.end();
  return it != json.end() && it->is_number() ? it->get<double>() : 0;
}

// The means of a configuration's trials; `ratio` is its samples a second, 0 where the batch is not known.
std::optional<EndToEnd> of_configuration(const std::vector<Trial>& trials, const std::string& identity) {
  EndToEnd mean;
  double samples = 0, count = 0;
  for (const Trial& trial : trials) {
    if (trial.identity != identity) continue;
    const std::optional<EndToEnd> one = end_to_end_of(trial);
    if (!one) continue;
    mean.wall_us += one->wall_us;
    mean.engine_us += one->engine_us;
    samples += number_in(trial.record.config, config::kTrainBatchKey);
    ++count;
  }
  if (count == 0) return std::nullopt;
  mean.ratio = samples * 1e6 / mean.wall_us;
  mean.wall_us /= count;
  mean.engine_us /= count;
  return mean;
}

}  // namespace

std::optional<EndToEnd> end_to_end_of(const Trial& trial) {
  if (trial.record.outcome != Outcome::completed || trial.record.duplicate_of || trial.model_info) return std::nullopt;
  const double wall_us = number_in(trial.record.metrics, "wall_latency");
  const double engine_us = number_in(trial.record.metrics, "latency");
  if (wall_us <= 0 || engine_us <= 0) return std::nullopt;
  return EndToEnd{wall_us, engine_us, std::nullopt};
}

std::optional<EndToEnd> end_to_end_of_best(const std::vector<Trial>& trials, const std::string& own_identity,
                                           uint64_t best) {
  if (best >= trials.size()) return std::nullopt;
  const std::string& identity = trials[best].identity;
  std::optional<EndToEnd> found = of_configuration(trials, identity);
  if (!found) return std::nullopt;
  const double samples_per_second = *found->ratio;
  found->ratio.reset();
  if (own_identity.empty() || own_identity == identity) return found;
  const std::optional<EndToEnd> own = of_configuration(trials, own_identity);
  if (own && *own->ratio > 0 && samples_per_second > 0) found->ratio = samples_per_second / *own->ratio;
  return found;
}

}  // namespace dsat::host
