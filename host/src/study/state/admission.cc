// Checks the overrides as the user's own file was, merges them into the plan's configuration, completes the batch
// sizes, and asks DeepSpeed's rules.
#include "study/state/admission.h"

#include <fmt/format.h>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "dsat/config/world.h"

namespace dsat::host {
namespace {

constexpr const char* kAutotuning = "autotuning";

// The reason why the slots have no room for a trial of these sizes; empty: there is room.
std::string misfit(const Plan& plan, const Json& merged) {
  if (!plan.slots.sizes_are_tuned()) return "";
  const TrialShape shape = plan.shape_of(merged);
  if (SlotPool(plan.slots.slots, plan.max_slots).take(shape)) return "";
  return fmt::format("num_gpus {} on num_nodes {}: the slots have no room for it", shape.node_slots[0], shape.nodes());
}

// Completes the batch sizes of a merged configuration. The train batch follows from the others.
void complete_batch(const Plan& plan, Json& merged) {
  const config::GivenBatchSizes given = config::read_batch_sizes(merged);
  config::write_batch_sizes(
      merged,
      config::trial_batch_sizes(given.micro_batch.value_or(1), given.accumulation.value_or(1),
                                config::data_parallel_size_of(merged, plan.data_parallel_size), plan.global_batch));
}

std::string broken(const Plan& plan, const Json& merged) {
  if (const auto rule = config::broken_rule(merged, plan.rules())) return *rule;
  if (const auto condition = config::broken_condition(plan.space.conditions, merged, plan.slots.slots_per_trial)) {
    return *condition;
  }
  const int64_t train_batch = merged[config::kTrainBatchKey].get<int64_t>();
  if (plan.max_train_batch_size && train_batch > *plan.max_train_batch_size) {
    return fmt::format("{} {} is over --max-train-batch-size {}", config::kTrainBatchKey, train_batch,
                       *plan.max_train_batch_size);
  }
  return "";
}

// The overrides as DeepSpeed reads them. Overrides that DeepSpeed never accepts stay as they are, and `invalid` says
// why.
Json read_overrides(const Plan& plan, const Json& overrides, std::string& invalid) {
  try {
    return config::read_overrides(plan.base_config, overrides);
  } catch (const Error& error) {
    invalid = error.what();
    return overrides;
  }
}

}  // namespace

Admission admit(const Plan& plan, const Json& overrides) {
  Admission admission;
  Json merged = plan.base_config;
  try {
    config::overwrite(merged, read_overrides(plan, overrides, admission.invalid));
    const Json* profile = config::find(overrides, "autotuning.model_info.profile");
    admission.model_info = profile != nullptr && profile->is_boolean() && profile->get<bool>();
    config::keep_only_world(merged);
    if (admission.invalid.empty()) admission.invalid = misfit(plan, merged);
    complete_batch(plan, merged);
    if (admission.invalid.empty()) admission.invalid = broken(plan, merged);
  } catch (const std::exception& e) {
    if (admission.invalid.empty()) admission.invalid = e.what();
  }
  admission.config = std::move(merged);
  // A model-information run measures something else than a run of the same configuration for speed.
  admission.identity = config::identity(admission.config) + (admission.model_info ? " model_info" : "");
  return admission;
}

Json config_to_run(const Plan& plan, const Json& config) {
  Json complete = config;
  const Json* own = config::find(plan.user_config, kAutotuning);
  if (own == nullptr) return complete;
  Json section = *own;
  if (const Json* world = config::find(config, kAutotuning)) config::overwrite(section, *world);
  complete[kAutotuning] = std::move(section);
  return complete;
}

TrialSpec spec_of(const Plan& plan, const Trial& trial, bool has_train_batch) {
  const int further_steps = trial.phase == Phase::verification ? plan.verify_steps : 0;
  return {trial.id(),       trial.record.attempt, config_to_run(plan, trial.record.config),
          trial.model_info, trial.identity,       trial.earlier_runs,
          has_train_batch,  further_steps};
}

}  // namespace dsat::host
