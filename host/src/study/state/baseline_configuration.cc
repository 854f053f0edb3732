// Reads the batch sizes of the user's configuration and command, compares the stage with the plan's, and asks the rules
// of admission.
#include "study/state/baseline_configuration.h"

#include <fmt/format.h>

#include "command/hugging_face.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "dsat/config/world.h"
#include "plan/fit_bucket.h"
#include "study/state/admission.h"

namespace dsat::host {
namespace {

// The user's ZeRO stage if the configuration names one number, else DeepSpeed's default.
std::optional<int> own_stage(const Plan& plan) {
  const Json* section = config::find(plan.user_config, "zero_optimization");
  if (section != nullptr && section->is_string()) return std::nullopt;
  const Json* stage = config::find(plan.user_config, "zero_optimization.stage");
  if (stage != nullptr && (stage->is_array() || stage->is_string())) return std::nullopt;  // a wish to the search
  return config::zero_stage(plan.user_config);
}

// A trace has only a stand-in for the user's configuration, and a gain over it would mean nothing.
bool stands_in_for_none(const Plan& plan) {
  return plan.simulation && plan.command.empty() && plan.config_file == plan.simulation->name &&
         plan.simulation->source.is_object() && plan.simulation->source.contains("trace");
}

// Why the base configuration does not have the user's own stage; empty: it has it.
std::string why_stage_moved(const Plan& plan) {
  const std::optional<int> own = own_stage(plan);
  if (!own || *own == config::zero_stage(plan.base_config)) return "";
  Json config = plan.base_config;
  config::overwrite(config, Json{{"zero_optimization", {{"stage", *own}}}});
  return config::broken_rule(config, plan.world_rules()).value_or(fmt::format("its ZeRO stage {} is not tried", *own));
}

// The number of pipeline stages; of a list, its first value.
Json own_pipeline_stages(const Json& config) {
  const Json* stages = config::find(config, config::kPipelineStagesKey);
  if (stages == nullptr) return 1;
  return stages->is_array() && !stages->empty() ? stages->front() : *stages;
}

// Why the base configuration does not have the user's own number of pipeline stages; empty: it has it.
std::string why_pipeline_moved(const Plan& plan) {
  const Json own = own_pipeline_stages(plan.user_config);
  if (!plan.max_train_batch_size || !own.is_number() || own == own_pipeline_stages(plan.base_config)) return "";
  return fmt::format("its train_batch_size is over --max-train-batch-size {}", *plan.max_train_batch_size);
}

bool is_listed(const Json& config, const char* key) {
  const Json* value = config::find(config, key);
  return value != nullptr && value->is_array();
}

// Do the configuration, or the command's flags in place of "auto", give a micro batch? The base configuration has it.
bool gives_micro_batch(const Plan& plan) {
  if (is_listed(plan.user_config, config::kMicroBatchKey)) return false;
  Json config = plan.user_config;
  // A list is an axis and no size. The train batch follows the values of the axis and gives no micro batch.
  if (is_listed(config, config::kAccumulationKey)) {
    config.erase(config::kAccumulationKey);
    config.erase(config::kTrainBatchKey);
  }
  const config::GivenBatchSizes given =
      with_batch_flags(plan.command, plan.hugging_face, plan.arg_mappings, config::read_batch_sizes(config));
  return given.micro_batch || given.train_batch;
}

}  // namespace

BaselineConfiguration baseline_configuration(const Plan& plan) {
  BaselineConfiguration own;
  own.overrides = Json::object();
  try {
    own.why_not = stands_in_for_none(plan) ? "neither COMMAND nor --ds-config gives one" : why_stage_moved(plan);
    if (own.why_not.empty()) own.why_not = why_pipeline_moved(plan);
    if (!own.why_not.empty()) return own;
    if (!gives_micro_batch(plan)) {
      own.why_not = fmt::format("neither it nor the command gives {}", config::kMicroBatchKey);
      return own;
    }
    if (const auto bucket = replaced_bucket(plan)) {
      config::set(own.overrides, "zero_optimization.reduce_bucket_size", *bucket);
    }
  } catch (const std::exception& error) {
    own.why_not = error.what();
    return own;
  }
  const Admission admission = admit(plan, own.overrides);
  own.why_not = admission.invalid;
  if (own.why_not.empty()) own.identity = admission.identity;
  return own;
}

std::optional<int64_t> baseline_micro_batch(const Plan& plan) {
  const auto micro_batch = plan.base_config.at(config::kMicroBatchKey).get<int64_t>();
  if (!gives_micro_batch(plan) || !plan.space.allows_micro_batch(micro_batch)) return std::nullopt;
  return micro_batch;
}

}  // namespace dsat::host
