// Compares the world size of the profile trial with the world size of the plan.
#include "study/watch/world_size.h"

#include <fmt/format.h>

#include "dsat/config/batch.h"
#include "dsat/config/world.h"

namespace dsat::host {
namespace {

// The command ran with other numbers of processes than the trial's configuration asked for.
Error misfit(const Plan& plan, int64_t had, int64_t asked) {
  const std::string remedy =
      plan.slots.sizes_are_tuned()
          ? fmt::format("num_gpus and num_nodes ask for {}: the command does not follow them, so they cannot be tuned",
                        asked)
          : fmt::format("a trial has {} slots: give --slots-per-trial {}", asked, had);
  return Error(fmt::format("the profile trial ran with {} processes where {}", had, remedy));
}

}  // namespace

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
