// Makes a plan, and finds for each axis where it comes from. What keys do stands in a table, with the versions of
// DeepSpeed that read them (docs/real-deepspeed.md).
#include <fmt/format.h>

#include <algorithm>

#include "base/guarded.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/host/space.h"
#include "plan/command_axes.h"

namespace dsat::host {
namespace {

struct KeyNote {
  const char *key, *effect, *readers;
};
constexpr const char* kEvery = "every version";
constexpr KeyNote kKeyNotes[] = {
    {"zero_optimization.stage", "what is partitioned: 1 optimizer states, 2 gradients too, 3 parameters too", kEvery},
    {"train_micro_batch_size_per_gpu", "samples of a device in one pass", kEvery},
    {"gradient_accumulation_steps", "passes before an update; it changes the batch, or with --global-batch follows",
     kEvery},
    {"zero_optimization.reduce_bucket_size", "gradient elements in one reduction; a buffer of that size", kEvery},
    {"zero_optimization.overlap_comm", "reduces gradients during the backward pass; at stages 1 and 2 a second buffer",
     kEvery},
    {"zero_optimization.reduce_scatter", "reduce-scatter in place of all-reduce", kEvery},
    {"zero_optimization.contiguous_gradients", "copies gradients into one buffer as they come", kEvery},
    {"zero_optimization.round_robin_gradients", "spreads the copies of offloaded gradients over the ranks", kEvery},
    {"zero_optimization.stage3_prefetch_bucket_size", "parameter elements that are gathered ahead", kEvery},
    {"zero_optimization.stage3_param_persistence_threshold", "smaller parameters stay whole on each device", kEvery},
    {"zero_optimization.stage3_max_live_parameters", "gathered elements on a device at most", kEvery},
    {"zero_optimization.stage3_max_reuse_distance", "parameters that are used again within this many elements stay",
     kEvery},
    {"zero_optimization.sub_group_size", "elements of one update of the optimizer", kEvery},
    {"zero_optimization.offload_optimizer.device", "where the optimizer's states are", kEvery},
    {"zero_optimization.offload_optimizer.ratio", "the offloaded part of the optimizer", ""},
    {"zero_optimization.offload_param.device", "where parameters wait that are not in use", kEvery},
    {"zero_optimization.zero_hpz_partition_size", "a second copy of the parameters in groups of this size",
     "0.10.0 and later; refused before"},
    {"zero_optimization.zero_quantized_weights", "gathers parameters in 8 bit", "0.10.0 and later; refused before"},
    {"zero_optimization.zero_quantized_gradients", "reduces gradients in 4 bit", "0.10.0 and later; refused before"},
    {"zero_optimization.mics_shard_size", "partitions over groups of this size", "0.9.2 and later; refused before"},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params", "gathers parameters by all-reduce",
     "0.14.3 and later; refused before"},
    {"zero_optimization.stage3_module_granularity_threshold", "gathers small modules as one",
     "0.16.0 and later; refused before"}};

void take_note(AxisFacts& axis) {
  const auto note =
      std::find_if(std::begin(kKeyNotes), std::end(kKeyNotes), [&](const KeyNote& n) { return axis.key == n.key; });
  if (note == std::end(kKeyNotes)) return;
  axis.effect = note->effect;
  axis.readers = note->readers;
}

std::string origin_of(const std::string& key, const Plan& plan) {
  if (plan.space_file.is_object() && plan.space_file.contains(key)) return plan.space_name;
  const Json* own = config::find(plan.user_config, key);
  return own != nullptr && own->is_array() ? plan.config_name() : "default";
}

AxisFacts stage_axis(const Plan& plan) {
  AxisFacts axis{"zero_optimization.stage", {}, {}, origin_of("zero_optimization.stage", plan), "", ""};
  for (const config::StageSpace& stage : plan.space.stages) {
    axis.values.emplace_back(stage.stage);
    axis.stages.push_back(stage.stage);
  }
  return axis;
}

AxisFacts micro_batch_axis(const Plan& plan) {
  AxisFacts axis{
      config::kMicroBatchKey, {plan.space.min_micro_batch}, {}, origin_of(config::kMicroBatchKey, plan), "", ""};
  if (const auto most = plan.space.max_micro_batch; most && most != plan.space.min_micro_batch) {
    axis.values.emplace_back(*most);
  }
  for (const config::StageSpace& stage : plan.space.stages) axis.stages.push_back(stage.stage);
  return axis;
}

SpaceFacts facts_of(const Plan& plan) {
  SpaceFacts facts{{stage_axis(plan), micro_batch_axis(plan)}, plan.notices};
  for (const config::StageSpace& stage : plan.space.stages) {
    for (const config::Axis& axis : stage.axes) {
      const auto same = std::find_if(facts.axes.begin(), facts.axes.end(), [&](const AxisFacts& known) {
        return known.key == axis.key && known.values == axis.values;
      });
      if (same == facts.axes.end()) {
        facts.axes.push_back({axis.key, axis.values, {stage.stage}, origin_of(axis.key, plan), "", ""});
      } else {
        same->stages.push_back(stage.stage);
      }
    }
  }
  for (AxisFacts& axis : facts.axes) {
    take_note(axis);
    const std::string use = use_in_command(axis.key, plan);
    if (axis.effect.empty() && !use.empty()) axis.effect = use;
    for (const config::Condition& condition : plan.space.conditions) {
      if (condition.axis == axis.key) axis.conditions.push_back(describe(condition));
    }
  }
  return facts;
}

}  // namespace

Result<SpaceFacts> space_of(const StudyOptions& options) {
  return as_result([&] { return facts_of(make_plan(options)); });
}

Json to_json(const SpaceFacts& facts) {
  Json axes = Json::array();
  const auto text = [](const std::string& known) { return known.empty() ? Json() : Json(known); };
  for (const AxisFacts& axis : facts.axes) {
    axes.push_back({{"key", axis.key},
                    {"values", axis.values},
                    {"stages", axis.stages},
                    {"origin", axis.origin},
                    {"effect", text(axis.effect)},
                    {"readers", text(axis.readers)},
                    {"conditions", axis.conditions}});
  }
  return {{"axes", std::move(axes)}, {"notices", facts.notices}};
}

}  // namespace dsat::host
