// Tables of defects and of retired keys by version, and the parser of versions.
#include "dsat/config/engine_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "dsat/config/json.h"
#include "values.h"

namespace dsat::config {
namespace {

struct Defect {
  EngineVersion from, before;
  int stage;
  const char* text;
  bool of_bf16 = false;  // of no other precision
};
constexpr EngineVersion kNotYet{1 << 20, 0, 0};  // no version is known that mended it

constexpr Defect kDefects[] = {
    {{0, 17, 6},
     {0, 18, 3},
     2,
     "may reduce gradients wrongly at ZeRO 2: leave stage 2 out, or train with 0.18.3 or later"},
    {{0, 18, 5}, {0, 18, 7}, 2, "is slower at ZeRO 2 than the versions before and after it"},
    {{0, 18, 3},
     kNotYet,
     2,
     "loses gradients in bf16 at ZeRO 2 on several ranks if a module runs more than once a step (its issue 8224): "
     "leave "
     "stage 2 out then",
     true},
};

constexpr const char* kRetired[] = {"curriculum_learning",
                                    "progressive_layer_drop",
                                    "compression_training",
                                    "sparse_attention",
                                    "amp",
                                    "quantize_training",
                                    "eigenvalue",
                                    "elasticity",
                                    "nebula",
                                    "sparse_gradients",
                                    "graph_harvesting",
                                    "zero_optimization.mics_shard_size",
                                    "zero_optimization.mics_hierarchical_params_gather",
                                    "zero_optimization.zeropp_loco_param"};

}  // namespace

std::optional<EngineVersion> parse_engine_version(std::string_view text) {
  EngineVersion version;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (int* part : {&version.major, &version.minor, &version.patch}) {
    const auto [after, error] = std::from_chars(at, end, *part);
    if (error != std::errc() || *part < 0) return std::nullopt;
    if (part != &version.patch && (after == end || *after != '.')) return std::nullopt;
    at = after + (after == end ? 0 : 1);
  }
  return version;
}

std::vector<std::string> engine_defects(const EngineVersion& version, const std::vector<int>& stages,
                                        const Json& config) {
  const Json* bf16 = find(config, "bf16.enabled");
  const bool is_bf16 = bf16 != nullptr && *bf16 == true;
  std::vector<std::string> found;
  for (const Defect& defect : kDefects) {
    const bool has = !(version < defect.from) && version < defect.before;
    if (!has || (defect.of_bf16 && !is_bf16) || std::find(stages.begin(), stages.end(), defect.stage) == stages.end())
      continue;
    found.push_back(fmt::format("DeepSpeed {}.{}.{} {}", version.major, version.minor, version.patch, defect.text));
  }
  return found;
}

std::vector<std::string> retired_keys(const Json& config) {
  std::vector<std::string> found;
  for (const char* key : kRetired) {
    if (find(config, key) != nullptr) found.emplace_back(key);
  }
  return found;
}

std::vector<std::string> refused_fractions(const EngineVersion& version, const Json& config) {
  std::vector<std::string> found;
  if (version < EngineVersion{0, 17, 1}) return found;
  for (const char* key :
       {"fp16.initial_scale_power", "fp16.loss_scale_window", "fp16.hysteresis", "fp16.min_loss_scale"}) {
    const Json* value = find(config, key);
    if (value != nullptr && value->is_number_float() && !as_integer(*value)) found.emplace_back(key);
  }
  return found;
}

}  // namespace dsat::config
