// Derives the space and the starting configuration, limited by bounds of the train batch and by ZeRO rules. They are
// derived again if a trial reports another data-parallel size.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "command/hugging_face.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "plan/fit_bucket.h"
#include "plan/plan.h"
#include "plan/runners.h"

namespace dsat::host {
namespace {

void collect_auto(const Json& node, const std::string& prefix, std::vector<std::string>& found) {
  for (const auto& item : node.items()) {
    const std::string key = prefix + item.key();
    if (item.value().is_object() && key != "autotuning") collect_auto(item.value(), key + ".", found);
    if (item.value() == "auto" && !config::takes_auto(key)) found.push_back(key);
  }
}

// The search chooses a stage that the file leaves open, so the base configuration needs a number.
void number_stage(Plan& plan) {
  constexpr const char* kStageKey = "zero_optimization.stage";
  const Json* stage = config::find(plan.base_config, kStageKey);
  if (stage != nullptr && *stage == "auto") config::set(plan.base_config, kStageKey, plan.space.stages.front().stage);
}

// Only Hugging Face's Trainer and accelerate replace "auto" by a value before DeepSpeed sees it.
void leave_out_auto(Plan& plan) {
  if (plan.hugging_face) return number_stage(plan);
  std::vector<std::string> keys;
  collect_auto(plan.base_config, "", keys);
  if (keys.empty()) return;
  // Sections go as well: accelerate sets a precision only if the section is missing.
  for (const std::string& key : keys) config::erase_with_sections(plan.base_config, key);
  const bool one = keys.size() == 1;
  plan.notices.push_back(
      fmt::format(R"('{}' {} "auto", which only Hugging Face's Trainer and accelerate fill in, and the command has )"
                  "neither: the key{} removed, so DeepSpeed's default{} used",
                  fmt::join(keys, "', '"), one ? "is" : "are", one ? " is" : "s are", one ? " is" : "s are"));
}

// The profile starts from the base configuration. If the user's stage does not fit the other keys, it starts at the
// lowest stage of the space that does. Keys that are wrong at every stage are refused here, before a trial.
std::optional<std::string> settle_base_stage(Plan& plan) {
  const config::RuleOptions rules = plan.world_rules();
  const std::optional<std::string> broken = config::broken_rule(plan.base_config, rules);
  if (!broken) return std::nullopt;
  for (const config::StageSpace& stage : plan.space.stages) {
    Json candidate = plan.base_config;
    config::overwrite(candidate, Json{{"zero_optimization", {{"stage", stage.stage}}}});
    if (config::broken_rule(candidate, rules)) continue;
    plan.base_config = std::move(candidate);
    return fmt::format("the configuration's own ZeRO stage is not legal ({}): the profile starts at stage {}", *broken,
                       stage.stage);
  }
  throw Error(fmt::format("{}: {}", plan.config_name(), *broken));
}

// Returns the user's configuration for each possible number of pipeline stages. Values that are no numbers are refused
// where the space is built.
std::vector<Json> by_pipeline_stages(const Plan& plan) {
  const Json* list = config::find(plan.user_config, config::kPipelineStagesKey);
  if (plan.space_file.is_object() && plan.space_file.contains(config::kPipelineStagesKey)) {
    list = &plan.space_file[config::kPipelineStagesKey];
    if (list->is_object() && list->contains("values")) list = &(*list)["values"];
  }
  if (list == nullptr || !list->is_array()) return {plan.user_config};
  std::vector<Json> configs;
  for (const Json& stages : *list) {
    configs.push_back(plan.user_config);
    config::set(configs.back(), config::kPipelineStagesKey, stages);
  }
  return configs;
}

// Returns nodes and devices per node, if they are the same for all trials.
config::World world_of(const SlotPlan& slots) {
  const std::vector<int>& nodes = slots.shape.node_slots;
  const bool even = std::all_of(nodes.begin(), nodes.end(), [&](int of_node) { return of_node == nodes.front(); });
  return even && !nodes.empty() ? config::World{nodes.front(), slots.shape.nodes()}
                                : config::World{slots.slots_per_trial, 1};
}

// Returns the least common multiple of the trials' data-parallel sizes: a micro batch that divides the global batch
// with it does so in every trial.
int64_t common_multiple(const Plan& plan, int64_t otherwise) {
  const std::vector<Json> configs = by_pipeline_stages(plan);
  std::vector<int64_t> worlds;
  for (const int gpus : plan.slots.num_gpus) {
    for (const int nodes : plan.slots.num_nodes) worlds.push_back(int64_t{gpus} * nodes);
  }
  if (worlds.empty() && configs.size() == 1) return otherwise;
  if (worlds.empty()) worlds.push_back(plan.slots.slots_per_trial);
  int64_t multiple = 1;
  for (const int64_t world : worlds) {
    for (const Json& config : configs) {
      try {
        multiple = std::lcm(multiple, config::data_parallel_size(world, config));
      } catch (const Error&) {
        // Such a trial is refused when it is requested.
      }
    }
  }
  return multiple;
}

// The study starts with the user's batch sizes, including those from the command's flags for "auto". If trials differ
// in their data-parallel size, the train batch is computed for each of them, because a batch that is wrong for the
// first may be right for others. Returns a notice if the sizes were written for another number of devices.
std::optional<std::string> complete_base_batch(Plan& plan) try {
  config::GivenBatchSizes given = config::read_batch_sizes(plan.base_config);
  given = with_batch_flags(plan.command, plan.hugging_face, plan.arg_mappings, given);
  if (config::tuned_world(plan.base_config) && (given.micro_batch || given.accumulation)) given.train_batch.reset();
  // A batch that is wrong for the first value of a list may be right for another, so it is computed for each.
  for (const char* key : {config::kMicroBatchKey, config::kAccumulationKey}) {
    const Json* own = config::find(plan.user_config, key);
    if (own != nullptr && own->is_array()) given.train_batch.reset();
  }
  const config::BatchSizes sizes = config::fit_batch_sizes(given, plan.data_parallel_size);
  config::write_batch_sizes(plan.base_config, sizes);
  if (sizes.train_batch == given.train_batch.value_or(sizes.train_batch)) return std::nullopt;
  return fmt::format(
      "the configuration's {} {} was written for another number of devices: here it is {} (micro batch {} x "
      "accumulation {} x data-parallel size {})",
      config::kTrainBatchKey, *given.train_batch, sizes.train_batch, sizes.micro_batch, sizes.accumulation,
      plan.data_parallel_size);
} catch (const Error& error) {
  throw plan.in_config(error);
}

// With few pipeline stages there are many ranks, and the smallest train batch may exceed the bound. Then the profile
// starts with the first number of stages whose train batch does not.
std::optional<std::string> settle_base_pipeline(Plan& plan) {
  if (!plan.max_train_batch_size || plan.global_batch || plan.slots.sizes_are_tuned()) return std::nullopt;
  const int64_t most = *plan.max_train_batch_size;
  const int64_t of_rank = plan.space.min_micro_batch * plan.base_config.at(config::kAccumulationKey).get<int64_t>();
  if (of_rank * plan.data_parallel_size <= most) return std::nullopt;
  for (const Json& config : by_pipeline_stages(plan)) {
    const Json* stages = config::find(config, config::kPipelineStagesKey);
    if (stages == nullptr) continue;
    Json candidate = plan.base_config;
    config::set(candidate, config::kPipelineStagesKey, *stages);
    int64_t size = 0;
    try {
      size = config::data_parallel_size_of(candidate, plan.data_parallel_size);
    } catch (const Error&) {
      continue;  // such a trial is refused when it is requested
    }
    if (of_rank * size > most) continue;
    plan.base_config = std::move(candidate);
    plan.data_parallel_size = size;
    complete_base_batch(plan);
    return fmt::format(
        "the configuration's own train_batch_size is above --max-train-batch-size {}: the profile starts "
        "with {} {}",
        most, config::kPipelineStagesKey, stages->dump());
  }
  return std::nullopt;
}

// Returns the smallest data-parallel size of trials that differ only in pipeline stages.
int64_t smallest_data_parallel_size(const Plan& plan) {
  const std::vector<Json> configs = by_pipeline_stages(plan);
  if (configs.size() == 1) return plan.data_parallel_size;
  int64_t smallest = plan.data_parallel_size;
  for (const Json& config : configs) {
    try {
      smallest = std::min(smallest, config::data_parallel_size(plan.slots.slots_per_trial, config));
    } catch (const Error&) {
      // Such a trial is refused when it is requested.
    }
  }
  return smallest;
}

// Converts the bound of the train batch into one of the micro batch, if accumulation and data-parallel size are known.
// If trials differ in these, the smallest are used; a searcher applies the bound to the others.
void bound_by_train_batch(Plan& plan) {
  if (!plan.max_train_batch_size || plan.slots.sizes_are_tuned()) return;
  const std::string bound = fmt::format("--max-train-batch-size {}", *plan.max_train_batch_size);
  if (plan.global_batch) {
    if (*plan.global_batch <= *plan.max_train_batch_size) return;
    throw Error(fmt::format("{} is below --global-batch {}: nothing is left to try", bound, *plan.global_batch));
  }
  int64_t accumulation = plan.base_config.at(config::kAccumulationKey).get<int64_t>();
  for (const config::StageSpace& stage : plan.space.stages) {
    for (const config::Axis& axis : stage.axes) {
      if (axis.key != config::kAccumulationKey) continue;
      for (const Json& value : axis.values) accumulation = std::min(accumulation, value.get<int64_t>());
    }
  }
  const int64_t data_parallel_size = smallest_data_parallel_size(plan);
  const int64_t samples = accumulation * data_parallel_size;
  if (plan.space.min_micro_batch * samples > *plan.max_train_batch_size) {
    throw Error(fmt::format(
        "{}: the smallest train_batch_size is {} (micro batch {} x accumulation {} x data-parallel size "
        "{}): allow more",
        bound, plan.space.min_micro_batch * samples, plan.space.min_micro_batch, accumulation, data_parallel_size));
  }
  const int64_t largest = *plan.max_train_batch_size / samples;
  plan.space.max_micro_batch = std::min(plan.space.max_micro_batch.value_or(largest), largest);
}

}  // namespace

config::RuleOptions Plan::world_rules() const {
  config::RuleOptions rules;
  rules.world_size = slots.slots_per_trial;
  rules.engine_version = engine_version;
  const bool here = !simulation && runner == kLocalRunner && slots.hostfile.empty();
  rules.on_processors = here && slots.backend == Backend::none;
  return rules;
}

config::RuleOptions Plan::rules() const {
  config::RuleOptions rules = world_rules();
  rules.min_micro_batch = min_micro_batch;
  rules.max_micro_batch = max_micro_batch;
  return rules;
}

bool Plan::lacks_configuration() const {
  return !metric_pattern.empty() && config_file.empty() && !inject && !config_by_environment;
}

std::string Plan::config_name() const {
  const std::string file = config_file.empty() ? "the configuration" : config_file.string();
  constexpr const char* kOverwrites = "hyperparameters.overwrite_deepspeed_args";
  const Json* overwrites = experiment.is_object() ? config::find(experiment, kOverwrites) : nullptr;
  const bool has_overwrites = overwrites != nullptr && overwrites->is_object() && !overwrites->empty();
  return has_overwrites ? fmt::format("{} with {} of the experiment", file, kOverwrites) : file;
}

Error Plan::in_config(const Error& error) const {
  return Error(error.code(), fmt::format("{}: {}", config_name(), error.what()));
}

// Plans of earlier releases have the flags alone.
std::string Plan::filled_in_precision() const {
  if (!hugging_face) return "";
  return precision.empty() ? precision_of_flags(command) : precision;
}

int Plan::concurrency() const { return std::max(1, std::min(max_concurrent_trials, slots.at_once)); }

TrialShape Plan::shape_of(const Json& config) const { return slots.shape_of(config); }

void derive_space(Plan& plan, int64_t data_parallel_size) {
  config::SpaceRequest request;
  request.stages = plan.zero_stages;
  request.user_config = plan.user_config;
  request.config_name = plan.config_name();
  request.space_file = plan.space_file;
  if (!plan.space_name.empty()) request.space_name = plan.space_name;
  request.rules = plan.rules();
  request.global_batch = plan.global_batch;
  request.default_axes = plan.default_axes;
  request.num_gpus = plan.slots.num_gpus;
  request.num_nodes = plan.slots.num_nodes;
  request.world = world_of(plan.slots);
  request.dp_size = common_multiple(plan, data_parallel_size);
  config::SpaceResult result = config::build_space(request);
  const bool first_time = plan.space.stages.empty();
  const std::vector<std::string> earlier_notices = plan.notices;
  plan.space = std::move(result.space);
  plan.base_config = std::move(result.base_config);
  plan.data_parallel_size = config::data_parallel_size_of(plan.base_config, data_parallel_size);
  const std::optional<std::string> refitted = complete_base_batch(plan);
  const std::optional<std::string> piped = settle_base_pipeline(plan);
  bound_by_train_batch(plan);
  leave_out_auto(plan);
  const std::optional<std::string> fitted = fit_bucket(plan);
  const std::optional<std::string> moved = settle_base_stage(plan);
  if (first_time) {
    for (const auto& notice : {refitted, moved, piped, fitted}) {
      if (notice) plan.notices.push_back(*notice);
    }
    plan.notices.insert(plan.notices.end(), result.notices.begin(), result.notices.end());
  } else {
    plan.notices = earlier_notices;
  }
}

}  // namespace dsat::host
