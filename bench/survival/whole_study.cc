// The surface answers the host's simulation. One trial runs at a time, so the trials' durations are the study's clock.
#include "survival/whole_study.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "search/surfaces/measure.h"

namespace dsat::bench {
namespace {

host::Outcome outcome_of(Outcome outcome) {
  if (outcome == Outcome::completed) return host::Outcome::completed;
  return outcome == Outcome::out_of_memory ? host::Outcome::out_of_memory : host::Outcome::failed;
}

class HostSurface : public host::Surface {
 public:
  HostSurface(bench::Surface surface, PeakShare share) : surface_(std::move(surface)), share_(std::move(share)) {}

  host::SimulatedRun run(const host::SimulatedTrial& trial) const override {
    Json config = trial.config;
    if (trial.model_info) config["autotuning"]["model_info"]["profile"] = true;
    const SurfaceTrial answer = measure(surface_of(config, trial.seed), config, trial.seed, 0, true, now_s_);
    now_s_ += answer.duration_s;
    host::SimulatedRun run;
    run.outcome = outcome_of(answer.answer.outcome);
    run.reason = answer.answer.reason;
    run.peak_bytes = answer.answer.peak_bytes;
    run.seconds = answer.duration_s;
    for (const auto& [name, value] : answer.answer.metrics) run.metrics[name] = value;
    if (surface_.reports_device_memory) run.device_memory_bytes = static_cast<uint64_t>(surface_.job.device_memory);
    return run;
  }

 private:
  bench::Surface surface_of(const Json& config, uint64_t run) const {
    if (!share_) return surface_;
    const int steps = config.value("/autotuning/end_profile_step"_json_pointer, kTrialSteps - 1) + 1;
    const double share = share_(point_of(config), steps, run);
    bench::Surface changed = surface_;
    changed.twists.push_back([share](const TrainingJob&, const SurfacePoint&, Truth& truth) {
      truth.peak_bytes *= share;
      truth.reported_bytes *= share;
    });
    return changed;
  }

  bench::Surface surface_;
  PeakShare share_;
  mutable double now_s_ = 0;  // of this study, which is never resumed
};

int keys_changed(const Json& own, const Json& best) {
  int count = 0;
  for (const auto& [key, value] : config::leaves_of(best)) {
    const Json* before = config::find(own, key);
    count += key != config::kTrainBatchKey && (before == nullptr || *before != value) ? 1 : 0;
  }
  return count;
}

// The user's own configuration. A list is an axis for the host, and its first value is the user's.
Json own_of(const Surface& surface, bool with_axes) {
  Json own = surface.base_config();
  if (surface.offload_axis) {
    Json& device = own["zero_optimization"]["offload_optimizer"]["device"];
    device = with_axes ? Json{"none", "cpu"} : Json("none");
  }
  return own;
}

host::StudyOptions options_for(const Surface& surface, const WholeStudySetting& setting) {
  host::StudyOptions options;
  options.isolation = host::Isolation::none;
  options.searcher = {setting.searcher, setting.searcher_options};
  options.metric = "throughput";
  options.zero_stages = surface.stages;
  options.max_trials = setting.max_trials;
  options.seed = setting.seed;
  options.max_restarts = 0;
  if (setting.memory_margin >= 0) options.memory_margin = setting.memory_margin;
  options.verify_steps = setting.verify_steps;
  options.keep_all_changes = setting.keeps_all_changes;
  options.trial_timeout = std::chrono::hours(1000);
  host::Simulation simulation;
  simulation.surface = std::make_shared<HostSurface>(surface, setting.peak_share);
  simulation.base_config = own_of(surface, true);
  simulation.slots = static_cast<int>(surface.job.gpus);
  simulation.slots_per_trial = simulation.slots;
  simulation.keep = false;
  options.simulation = std::move(simulation);
  return options;
}

}  // namespace

WholeStudy run_whole_study(const Surface& surface, const WholeStudySetting& setting) {
  auto study = host::Study::create(options_for(surface, setting));
  if (!study.ok()) throw Error(surface.name + ": " + study.status().message());
  host::Observer silent;
  const host::StudyResult result = study.value()->run(silent);
  WholeStudy whole;
  for (const auto& [outcome, count] : result.counts) {
    if (outcome != host::Outcome::invalid_config) whole.trials += count;  // such a one never ran, and costs nothing
  }
  const auto failed = result.counts.find(host::Outcome::out_of_memory);
  whole.out_of_memory = failed != result.counts.end() ? failed->second : 0;
  if (!result.best) return whole;
  whole.best = result.best->config;
  whole.throughput = surface.throughput(point_of(whole.best));
  whole.keys_changed = keys_changed(own_of(surface, false), whole.best);
  return whole;
}

int lower_median(std::vector<int> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

}  // namespace dsat::bench
