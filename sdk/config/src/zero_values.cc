// DeepSpeed's own checks as a table of types by key, and canonical(), which reads a configuration by that table. If
// versions differ, the strictest counts. The checks were found by trial (docs/real-deepspeed.md).
#include "zero_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "dsat/base/numbers.h"
#include "dsat/config/rules.h"
#include "known_keys.h"
#include "values.h"

namespace dsat::config {
namespace {

constexpr std::string_view kZeroSection = "zero_optimization";

enum class Type {
  kStage,
  kFlag,
  kOptionalFlag,
  kNoText,
  kTruth,
  kFalse,
  kCount,
  kInteger,
  kPositive,
  kNumber,
  kShare,
  kText,
  kDevice,
  kDtype,
  kShortDtype
};

struct Row {
  const char* section;
  Type type;
  const char* names;  // separated by blanks
};

constexpr Row kRows[] = {
    {"", Type::kNoText, "wall_clock_breakdown"},
    {"", Type::kPositive, "steps_per_print"},
    {"", Type::kNumber, "gradient_clipping"},
    {"", Type::kShortDtype, "communication_data_type"},
    {"data_types", Type::kDtype, "grad_accum_dtype"},
    {"optimizer", Type::kText, "type"},
    {"fp16", Type::kOptionalFlag, "enabled"},
    {"bf16", Type::kOptionalFlag, "enabled"},
    {"bfloat16", Type::kOptionalFlag, "enabled"},
    {"activation_checkpointing", Type::kTruth, "partition_activations cpu_checkpointing"},
    {"flops_profiler", Type::kNoText, "enabled"},
    {"comms_logger", Type::kFlag, "enabled verbose prof_all debug"},
    {"tensorboard", Type::kFlag, "enabled"},
    {"csv_monitor", Type::kFlag, "enabled"},
    {"wandb", Type::kFlag, "enabled"},
    {"zero_optimization", Type::kStage, "stage"},
    {"zero_optimization", Type::kFlag,
     "contiguous_gradients reduce_scatter use_multi_rank_bucket_allreduce allgather_partitions load_from_fp32_weights "
     "elastic_checkpoint stage3_gather_16bit_weights_on_model_save stage3_use_all_reduce_for_fetch_params "
     "stage3_allgather_sequential ignore_unused_parameters round_robin_gradients zero_quantized_weights "
     "zero_quantized_nontrainable_weights zero_quantized_gradients mics_hierarchical_params_gather "
     "memory_efficient_linear pipeline_loading_checkpoint override_module_apply log_trace_cache_warnings "
     "enable_sanity_checks save_muon_momentum_buffer_in_memory"},
    {"zero_optimization", Type::kOptionalFlag,
     "overlap_comm cpu_offload cpu_offload_param cpu_offload_use_pin_memory stage3_gather_fp16_weights_on_model_save"},
    {"zero_optimization", Type::kFalse, "legacy_stage1"},
    {"zero_optimization", Type::kCount,
     "reduce_bucket_size allgather_bucket_size sub_group_size stage3_prefetch_bucket_size "
     "stage3_param_persistence_threshold stage3_model_persistence_threshold stage3_max_live_parameters "
     "stage3_max_reuse_distance zero_hpz_partition_size"},
    {"zero_optimization", Type::kInteger, "stage3_module_granularity_threshold mics_shard_size"},
    {"zero_optimization.offload_param", Type::kDevice, "device"},
    {"zero_optimization.offload_param", Type::kFlag, "pin_memory"},
    {"zero_optimization.offload_param", Type::kCount, "buffer_count buffer_size max_in_cpu"},
    {"zero_optimization.offload_optimizer", Type::kDevice, "device"},
    {"zero_optimization.offload_optimizer", Type::kFlag,
     "pin_memory pipeline_read pipeline_write fast_init super_offload"},
    {"zero_optimization.offload_optimizer", Type::kCount, "buffer_count"},
    {"zero_optimization.offload_optimizer", Type::kShare, "ratio cpuadam_cores_perc"},
};

using Types = std::map<std::string, Type, std::less<>>;

const Types& types() {
  static const Types instance = [] {
    Types out;
    for (const Row& row : kRows) {
      const std::string prefix = *row.section == '\0' ? "" : std::string(row.section) + ".";
      std::istringstream names(row.names);
      for (std::string name; names >> name;) out.emplace(prefix + name, row.type);
    }
    return out;
  }();
  return instance;
}

const char* wanted(Type type) {
  switch (type) {
    case Type::kStage:
      return "0, 1, 2 or 3";
    case Type::kFlag:
    case Type::kOptionalFlag:
    case Type::kNoText:
    case Type::kTruth:
      return "true or false";
    case Type::kFalse:
      return "false, because DeepSpeed no longer has that stage 1";
    case Type::kCount:
      return "an integer of at least 0";
    case Type::kInteger:
      return "an integer";
    case Type::kPositive:
      return "a positive integer";
    case Type::kNumber:
      return "a number";
    case Type::kShare:
      return "a number from 0 to 1";
    case Type::kText:
      return "a string";
    case Type::kDevice:
      return "\"none\", \"cpu\" or \"nvme\"";
    case Type::kDtype:
    case Type::kShortDtype:
      return "fp32, fp16 or bf16";
  }
  return "";
}

// A truth value as DeepSpeed's checks read it: these words in any case, 0 and 1.
std::optional<bool> as_flag(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value == 0 || value == 1 ? std::optional<bool>(value == 1) : std::nullopt;
  if (!value.is_string()) return std::nullopt;
  const std::string word = lower_case(value.get<std::string>());
  for (const char* yes : {"true", "yes", "on", "t", "y", "1"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "f", "n", "0"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

// DeepSpeed reads "5" as an integer, but not "5e8".
std::optional<int64_t> as_count(const Json& value) {
  constexpr int64_t kMost = INT64_MAX;
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_string()) return parse_integer(value.get<std::string>(), -kMost, kMost);
  return as_integer(value);
}

// Tools that reckon a size from the model's leave a fraction, which DeepSpeed before 0.15 cut off and later versions
// refuse. The whole part is the same to all.
Json without_fraction(const Json& value) {
  const bool has_one = value.is_number_float() && value >= 1;
  return has_one ? Json(std::floor(value.get<double>())) : value;
}

std::optional<Json> from_integer(const std::optional<int64_t>& number, int64_t least, int64_t most = INT64_MAX) {
  if (!number || *number < least || *number > most) return std::nullopt;
  return Json(*number);
}

// DeepSpeed's first name of the type in `value`. Names are case-sensitive.
std::optional<Json> as_dtype(const Json& value) {
  constexpr const char* kNames[][4] = {{"fp32", "float32", "float", "torch.float32"},
                                       {"fp16", "float16", "half", "torch.float16"},
                                       {"bf16", "bfloat16", "bf16", "torch.bfloat16"}};
  for (const auto& names : kNames) {
    if (std::find(std::begin(names), std::end(names), value) != std::end(names)) return Json(names[0]);
  }
  return std::nullopt;
}

// The value in dsat's form; nullopt: DeepSpeed refuses the value.
std::optional<Json> as_type(Type type, const Json& value) {
  const std::optional<bool> flag = as_flag(value);
  switch (type) {
    case Type::kStage:
      return from_integer(as_count(value), 0, 3);
    case Type::kOptionalFlag:
      if (value.is_null()) return value;
      [[fallthrough]];
    case Type::kFlag:
      return flag ? std::optional<Json>(*flag) : std::nullopt;
    case Type::kNoText:
      return flag && !value.is_string() ? std::optional<Json>(*flag) : std::nullopt;
    case Type::kTruth:
      return value.is_null() ? std::optional<Json>(value) : as_type(Type::kNoText, value);
    case Type::kFalse:
      return flag == false ? std::optional<Json>(false) : std::nullopt;
    case Type::kCount:
      return from_integer(as_count(without_fraction(value)), 0);
    case Type::kInteger:
      return from_integer(as_count(value), INT64_MIN);
    case Type::kPositive:
      return value.is_null() ? std::optional<Json>(value) : from_integer(as_integer(value), 1);
    case Type::kNumber:
      return value.is_number() || value.is_null() ? std::optional<Json>(value) : std::nullopt;
    case Type::kShare:
      return value.is_number() && value >= 0 && value <= 1 ? std::optional<Json>(value) : std::nullopt;
    case Type::kText:
      return value.is_string() || value.is_null() ? std::optional<Json>(value) : std::nullopt;
    case Type::kDtype:
      return value.is_null() ? std::optional<Json>(value) : as_dtype(value);
    case Type::kShortDtype: {
      if (value.is_null()) return value;
      const Json name = value.is_string() ? Json(lower_case(value.get<std::string>())) : value;
      return as_dtype(name) == name ? std::optional<Json>(value) : std::nullopt;
    }
    case Type::kDevice:
      return value == "none" || value == "cpu" || value == "nvme" ? std::optional<Json>(value) : std::nullopt;
  }
  return std::nullopt;
}

// A list in place of one value is an axis, and each of its values is checked.
void make_canonical(Json& value, const std::string& key) {
  if (value.is_array()) {
    for (Json& element : value) element = canonical_value(key, element);
  } else if (key != kStageKey || value != "all") {
    value = canonical_value(key, value);
  }
}

std::string together(const std::string& key, const std::string& other) {
  return fmt::format("{} and {} are the same key, and DeepSpeed refuses both together; keep one", key, other);
}

// Older switches and their replacements. DeepSpeed converts a switch, unless the replacement is there too.
constexpr std::pair<const char*, const char*> kReplaced[] = {
    {"cpu_offload", "offload_optimizer"},
    {"cpu_offload_param", "offload_param"},
    {"stage3_gather_fp16_weights_on_model_save", "stage3_gather_16bit_weights_on_model_save"}};

}  // namespace

std::optional<std::string> broken_by_replaced(const Json& zero) {
  const auto has = [&](const char* name) { return zero.contains(name) && zero[name] != "auto"; };
  const std::string prefix = std::string(kZeroSection) + ".";
  for (const auto& [older, newer] : kReplaced) {
    if (has(older) && has(newer)) return together(prefix + older, prefix + newer);
  }
  return std::nullopt;
}

namespace {

Json canonical_section(const Json& section, const std::string& prefix) {
  Json out = Json::object();
  for (const auto& [name, value] : section.items()) {
    const std::string written = prefix.empty() ? name : prefix + "." + name;
    const std::string key = canonical_key(written);
    const std::string own_name = prefix.empty() ? key : key.substr(prefix.size() + 1);
    const KeyKind kind = key_kind(key);
    if (out.contains(own_name) || (own_name != name && section.contains(own_name))) {
      throw Error(together(written, key));
    }
    Json& copy = out[own_name] = value;
    if (kind == KeyKind::kSection && value.is_object()) {
      copy = canonical_section(value, key);
    } else if (kind == KeyKind::kSection && value.is_boolean() && key == kZeroSection) {
      copy = Json{{"stage", value.get<bool>() ? 1 : 0}};  // the oldest form of the section
    } else if (kind == KeyKind::kSection && !value.is_null() && value != "auto" &&
               !(key == kZeroSection && value == "all")) {
      refuse_value(key, value, "a section in braces");
    } else if (kind == KeyKind::kScalar) {
      make_canonical(copy, key);
    }
  }
  if (prefix == kZeroSection) {
    if (const auto broken = broken_by_replaced(out)) throw Error(*broken);
  }
  return out;
}

}  // namespace

bool is_closed(std::string_view section) {
  // Some of these take every key in versions that read them without pydantic.
  constexpr std::string_view kClosed[] = {"zero_optimization.offload_param",
                                          "zero_optimization.offload_optimizer",
                                          "zero_optimization.zenflow",
                                          "zero_optimization.leaf_module",
                                          "bf16",
                                          "bfloat16",
                                          "fp16",
                                          "compile",
                                          "tensor_parallel",
                                          "tensor_parallel.tp"};
  return section == kZeroSection || std::find(std::begin(kClosed), std::end(kClosed), section) != std::end(kClosed);
}

bool takes_auto(std::string_view key) {
  constexpr std::string_view kKeys[] = {
      "zero_optimization.zenflow.select_strategy", "zero_optimization.zenflow.select_interval",
      "zero_optimization.zenflow.update_interval", "pipeline.stages", "pipeline.partition"};
  constexpr std::string_view kExperts = "expert_parallel.";
  return key.substr(0, kExperts.size()) == kExperts ||
         std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

std::string canonical_key(const std::string& key) {
  const std::string prefix = std::string(kZeroSection) + ".";
  if (key.compare(0, prefix.size(), prefix) != 0) return key;
  const std::string longer = prefix + "stage3_" + key.substr(prefix.size());
  return key_kind(key) == KeyKind::kScalar && key_kind(longer) == KeyKind::kScalar ? longer : key;
}

Json canonical_value(std::string_view key, const Json& value) {
  const auto type = types().find(key);
  if (type == types().end() || value == "auto") return value;
  const std::optional<Json> out = as_type(type->second, value);
  if (!out) refuse_value(key, value, wanted(type->second));
  return *out;
}

std::optional<std::string> accumulation_dtype(const Json& config) {
  constexpr std::string_view kKey = "data_types.grad_accum_dtype";
  const Json* value = find(config, kKey);
  if (value == nullptr || value->is_null() || *value == "auto") return std::nullopt;
  return canonical_value(kKey, *value).get<std::string>();
}

Json canonical(const Json& config) { return config.is_object() ? canonical_section(config, "") : config; }

}  // namespace dsat::config
