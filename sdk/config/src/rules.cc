// Combinations that DeepSpeed refuses or misreads, one function a rule. A message has the keys with their values, so
// that the user finds them in the file.
#include "dsat/config/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "engine_rules.h"
#include "values.h"
#include "zero_values.h"

namespace dsat::config {
namespace {

constexpr const char* kZero = "zero_optimization";
constexpr const char* kOptimizerDeviceKey = "zero_optimization.offload_optimizer.device";
constexpr const char* kParamDeviceKey = "zero_optimization.offload_param.device";
constexpr const char* kOffloadRatioKey = "zero_optimization.offload_optimizer.ratio";
constexpr const char* kAllgatherBucketKey = "zero_optimization.allgather_bucket_size";
constexpr const char* kAccumulationTypeKey = "data_types.grad_accum_dtype";
constexpr const char* kHpzKey = "zero_optimization.zero_hpz_partition_size";
constexpr const char* kMicsKey = "zero_optimization.mics_shard_size";

// Refuses a section that is given but is no object.
void require_section(const Json& config, const char* key) {
  const Json* section = find(config, key);
  if (section == nullptr || section->is_null() || section->is_object() || *section == "auto") return;
  refuse_value(key, *section, "a section in braces");
}

// "KEY DEVICE" if the key offloads something, else empty.
std::string offloads(const Json& config, const char* device_key, std::initializer_list<const char*> older_keys) {
  if (const std::optional<std::string> device = read_string(config, device_key)) {
    constexpr std::array<const char*, 3> kDevices = {"none", "cpu", "nvme"};
    if (std::find(kDevices.begin(), kDevices.end(), *device) == kDevices.end()) {
      refuse_value(device_key, Json(*device), "\"none\", \"cpu\" or \"nvme\"");
    }
    if (*device != "none") return fmt::format("{} {}", device_key, *device);
  }
  for (const char* older : older_keys) {
    if (read_bool(config, older).value_or(false)) return fmt::format("{} true", older);
  }
  return {};
}

std::optional<std::string> broken_pipeline_rule(const Json& config, int stage) {
  require_section(config, "pipeline");
  const int64_t stages = read_positive(config, "pipeline.stages").value_or(1);
  if (stages <= 1 || stage <= 1) return std::nullopt;
  return fmt::format("pipeline parallelism works only with ZeRO 0 or 1: pipeline.stages is {}{}", stages,
                     but_stage(stage));
}

std::optional<std::string> broken_offload_rule(const Json& config, int stage) {
  require_section(config, "zero_optimization.offload_param");
  require_section(config, "zero_optimization.offload_optimizer");
  const std::string params = offloads(config, kParamDeviceKey,
                                      {"zero_optimization.cpu_offload_param", "zero_optimization.cpu_offload_params"});
  if (!params.empty() && stage != 3) {
    return "parameter offload works only with ZeRO 3: " + params + but_stage(stage);
  }
  const std::string optimizer = offloads(config, kOptimizerDeviceKey, {"zero_optimization.cpu_offload"});
  if (!optimizer.empty() && stage == 0) {
    return "optimizer offload works only with ZeRO 1, 2 or 3: " + optimizer + but_stage(stage);
  }
  const Json* ratio = find(config, kOffloadRatioKey);
  if (ratio != nullptr && ratio->is_number() && *ratio < 1 && stage != 3) {
    return fmt::format("partial optimizer offload works only with ZeRO 3: {} is {}{}", kOffloadRatioKey, shown(*ratio),
                       but_stage(stage));
  }
  return std::nullopt;
}

// Hierarchical partitions of ZeRO 3 are groups of equal size. For hpZ a size above the number of devices means all.
std::optional<std::string> broken_partition_rule(const Json& config, int stage, const RuleOptions& options) {
  const std::optional<World> tuned = tuned_world(config);
  const int64_t devices = tuned ? tuned->size() : options.world_size.value_or(0);
  if (stage != 3 || devices < 1) return std::nullopt;
  for (const char* key : {kHpzKey, kMicsKey}) {
    const int64_t size = read_integer(config, key).value_or(0);
    if (size <= 1 || devices % size == 0 || (key == kHpzKey && size > devices)) continue;
    return fmt::format("{} must divide the number of devices of a trial: it is {}, the number is {}", key, size,
                       devices);
  }
  return std::nullopt;
}

std::optional<std::string> broken_micro_batch_rule(const Json& config, const RuleOptions& options) {
  const std::optional<int64_t> micro_batch = read_positive(config, kMicroBatchKey);
  if (!micro_batch) return std::nullopt;
  const std::string has = fmt::format("{} is {}", kMicroBatchKey, *micro_batch);
  if (*micro_batch < options.min_micro_batch) {
    return fmt::format("{}, below the smallest allowed, {} (--min-micro-batch)", has, options.min_micro_batch);
  }
  if (options.max_micro_batch && *micro_batch > *options.max_micro_batch) {
    return fmt::format("{}, above the largest allowed, {} (--max-micro-batch)", has, *options.max_micro_batch);
  }
  return std::nullopt;
}

std::optional<std::string> broken_bucket_rule(const Json& config, int stage) {
  for (const char* key : {"zero_optimization.reduce_bucket_size", kAllgatherBucketKey}) {
    const std::optional<int64_t> size = read_integer(config, key);
    if (size && *size < 1) return fmt::format("bucket sizes must be positive: {} is {}", key, *size);
  }
  const std::optional<int64_t> allgather = read_integer(config, kAllgatherBucketKey);
  if (allgather && *allgather % 2 != 0 && (stage == 1 || stage == 2)) {
    return fmt::format("the all-gather bucket size must be even with ZeRO 1 and 2: {} is {}{}", kAllgatherBucketKey,
                       *allgather, but_stage(stage));
  }
  // DeepSpeed reads a prefetch bucket of 0 as "do not prefetch".
  constexpr const char* kPrefetch = "zero_optimization.stage3_prefetch_bucket_size";
  const std::optional<int64_t> prefetch = read_integer(config, kPrefetch);
  if (prefetch && *prefetch < 0) {
    return fmt::format("bucket sizes must not be negative: {} is {}", kPrefetch, *prefetch);
  }
  return std::nullopt;
}

// Without ZeRO, DeepSpeed has no optimizer for some pairs of types. For the precision "auto" no rule applies.
std::optional<std::string> broken_gradient_type_rule(const Json& config, int stage, const std::string& on,
                                                     const RuleOptions& options) {
  const std::optional<std::string> dtype = accumulation_dtype(config);
  if (stage != 0 || !dtype || on.empty()) return std::nullopt;
  const auto version = options.engine_version;
  const char* wanted = "fp16 with fp16";
  bool allowed = *dtype == "fp16";
  if (on != "fp16.enabled") {
    const bool pipeline = read_positive(config, "pipeline.stages").value_or(1) > 1;
    const bool takes_bf16 = pipeline || !version || !(*version < EngineVersion{0, 17, 6});
    const bool takes_fp32 = !version || *version < EngineVersion{0, 18, 5};
    allowed = (*dtype == "bf16" && takes_bf16) || (*dtype == "fp32" && takes_fp32);
    wanted = !takes_bf16 ? "fp32 with bf16" : takes_fp32 ? "bf16 or fp32 with bf16" : "bf16 with bf16";
  }
  if (allowed) return std::nullopt;
  return fmt::format("without ZeRO, gradients must be {}: {} is {}, {} is true, and {} is 0", wanted,
                     kAccumulationTypeKey, *dtype, on, kStageKey);
}

std::optional<std::string> broken_precision_rule(const Json& config, int stage, const RuleOptions& options) {
  for (const char* section : {"fp16", "bf16", "bfloat16"}) require_section(config, section);
  std::string on;
  for (const char* key : {"fp16.enabled", bf16_key(config)}) {
    if (!read_bool(config, key).value_or(false)) continue;
    if (on == "fp16.enabled") return fmt::format("one precision at a time: fp16.enabled and {} are both true", key);
    on = key;
  }
  return options.engine_is_deepspeed ? broken_gradient_type_rule(config, stage, on, options) : std::nullopt;
}

}  // namespace

int zero_stage(const Json& config) {
  const Json* zero = find(config, kZero);
  // In the oldest form of the section, true means stage 1.
  if (zero != nullptr && zero->is_boolean()) return zero->get<bool>() ? 1 : 0;
  require_section(config, kZero);
  const Json* value = find(config, kStageKey);
  if (value == nullptr || value->is_null() || *value == "auto") return 0;
  const std::optional<int64_t> stage = as_integer(*value);
  if (!stage || *stage < 0 || *stage > 3) refuse_value(kStageKey, *value, "0, 1, 2 or 3");
  return static_cast<int>(*stage);
}

const char* bf16_key(const Json& config) {
  return find(config, "bf16") == nullptr && find(config, "bfloat16") != nullptr ? "bfloat16.enabled" : "bf16.enabled";
}

std::optional<std::string> broken_rule(const Json& config, const RuleOptions& options) {
  const int stage = zero_stage(config);
  const Json* zero = find(config, kZero);
  if (zero != nullptr && zero->is_object()) {
    if (auto broken = broken_by_replaced(*zero)) return broken;
  }
  if (auto broken = broken_pipeline_rule(config, stage)) return broken;
  if (auto broken = broken_offload_rule(config, stage)) return broken;
  if (auto broken = broken_micro_batch_rule(config, options)) return broken;
  if (auto broken = broken_bucket_rule(config, stage)) return broken;
  if (auto broken = broken_partition_rule(config, stage, options)) return broken;
  if (auto broken = broken_precision_rule(config, stage, options)) return broken;
  return options.engine_is_deepspeed ? broken_engine_rule(config, stage, options) : std::nullopt;
}

std::optional<std::string> forbids_stage(const Json& config, int stage, const RuleOptions& options) {
  Json at_stage = config;
  const Json* zero = find(at_stage, kZero);
  if (zero != nullptr && zero->is_boolean()) erase(at_stage, kZero);
  set(at_stage, kStageKey, stage);
  // Every trial has its own micro batch, so the user's micro batch forbids no stage.
  erase(at_stage, kMicroBatchKey);
  return broken_rule(at_stage, options);
}

}  // namespace dsat::config
