// Reads the keys of the cost model and further keys of the step model. Absent keys have DeepSpeed's defaults.
#include "dsat/config/batch.h"
#include "dsat/config/json_numbers.h"
#include "sim/step.h"

namespace dsat::host::sim {
namespace {

bool flag(const Json& config, const char* key, bool absent) {
  const Json* value = config::find(config, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : absent;
}

// Replaces "auto" as Hugging Face's Trainer does from the hidden size: reduce_bucket_size hidden^2, prefetch nine
// tenths of it, persistence threshold ten times the hidden size. The Trainer does not set allgather_bucket_size, so it
// has DeepSpeed's default.
void fill_auto(const Scenario& scenario, const Json& config, Run& run) {
  const double hidden = static_cast<double>(scenario.model.shape.hidden);
  const auto is_auto = [&](const char* key) {
    const Json* value = config::find(config, key);
    return value != nullptr && *value == "auto";
  };
  if (is_auto("zero_optimization.reduce_bucket_size")) run.setup.reduce_bucket_elements = hidden * hidden;
  if (is_auto("zero_optimization.allgather_bucket_size")) {
    run.setup.allgather_bucket_elements = cost::Setup().allgather_bucket_elements;
  }
  if (is_auto("zero_optimization.stage3_prefetch_bucket_size")) {
    run.setup.prefetch_bucket_elements = 0.9 * hidden * hidden;
  }
  if (is_auto("zero_optimization.stage3_param_persistence_threshold")) run.persistence_threshold = 10 * hidden;
}

}  // namespace

Run run_from_config(const Scenario& scenario, const Json& config, int slots) {
  Run run;
  run.setup = cost::setup_from_config(config, config::data_parallel_size(slots, config));
  run.accumulation = config::number_at(config, config::kAccumulationKey).value_or(1);
  run.reduce_scatter = flag(config, "zero_optimization.reduce_scatter", true);
  run.allgather_partitions = flag(config, "zero_optimization.allgather_partitions", true);
  run.contiguous_gradients = run.setup.contiguous_gradients;
  run.persistence_threshold =
      config::number_at(config, "zero_optimization.stage3_param_persistence_threshold").value_or(1e5);
  run.max_live = config::number_at(config, "zero_optimization.stage3_max_live_parameters").value_or(1e9);
  run.max_reuse_distance = config::number_at(config, "zero_optimization.stage3_max_reuse_distance").value_or(1e9);
  run.checkpointing =
      run.setup.activation_checkpointing ? cost::Checkpointing::full : scenario.model.shape.checkpointing;
  fill_auto(scenario, config, run);
  return run;
}

}  // namespace dsat::host::sim
