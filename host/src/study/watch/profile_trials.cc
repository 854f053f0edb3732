// Compares the micro batches of the profiler's trials, and the profile trial's world size with the world size of the
// plan.
#include "study/watch/profile_trials.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/config/batch.h"
#include "dsat/config/world.h"

namespace dsat::host {
namespace {

// The error of a command that ran with another number of processes than the trial's configuration asked for.
Error misfit(const Plan& plan, int64_t had, int64_t asked) {
  const std::string remedy =
      plan.slots.sizes_are_tuned()
          ? fmt::format("num_gpus and num_nodes ask for {}: the command does not follow them, so they cannot be tuned",
                        asked)
          : fmt::format("a trial has {} slots: give --slots-per-trial {}", asked, had);
  return Error(fmt::format("the profile trial ran with {} processes where {}", had, remedy));
}

}  // namespace

std::optional<LeastMicroBatch> least_micro_batch(const std::vector<Trial>& trials) {
  const auto micro_batch = [](const Trial& trial) {
    return trial.record.config.value(config::kMicroBatchKey, int64_t{0});
  };
  std::optional<int64_t> works;
  for (const Trial& trial : trials) {
    if (trial.phase != Phase::profiler || trial.record.outcome != Outcome::completed) continue;
    works = std::min(works.value_or(micro_batch(trial)), micro_batch(trial));
  }
  std::optional<LeastMicroBatch> least;
  for (const Trial& trial : trials) {
    if (trial.phase != Phase::profiler || trial.record.outcome != Outcome::failed) continue;
    const int64_t fails = micro_batch(trial);
    if (!works || fails >= *works || (least && fails <= least->fails)) continue;
    least = LeastMicroBatch{*works, fails, trial.record.reason};
  }
  return least;
}

std::string follow_world_size(Plan& plan, const Trial& trial) {
  if (!trial.model_info || !trial.end || !trial.end->world_size || *trial.end->world_size < 1) return "";
  const int64_t processes = *trial.end->world_size;
  const int64_t before = plan.data_parallel_size;
  std::optional<Error> refusal;
  try {
    const int64_t size = config::data_parallel_size(processes, plan.base_config);
    const auto world = config::tuned_world(trial.record.config);
    if (world && processes != world->size()) {
      refusal = misfit(plan, processes, world->size());
    } else if (!world && size != before) {
      derive_space(plan, size);
    }
  } catch (const std::exception& error) {
    refusal = Error(fmt::format("the profile trial's world size does not fit the configuration: {}", error.what()));
  }
  if (refusal) throw *refusal;
  if (plan.data_parallel_size == before) return "";
  return fmt::format("the profile trial ran with a data-parallel size of {}, not {}: batch sizes follow it",
                     plan.data_parallel_size, before);
}

}  // namespace dsat::host
