// One function a rule. A rule that not every version of DeepSpeed has asks for the version (docs/real-deepspeed.md).
#include "engine_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "dsat/config/rules.h"
#include "values.h"

namespace dsat::config {
namespace {

// A flag as Python reads it.
bool is_enabled(const Json& config, std::string_view key) {
  const Json* value = find(config, key);
  if (value == nullptr) return false;
  return value->is_boolean() ? value->get<bool>() : value->is_number() && *value != 0;
}

// Elasticity replaces a trial's batch sizes by its own, or stops the trial.
std::optional<std::string> broken_elasticity_rule(const Json& config) {
  if (!is_enabled(config, "elasticity.enabled")) return std::nullopt;
  return "elasticity.enabled is true, and DeepSpeed then chooses the batch sizes itself; set it to false for tuning";
}

std::optional<std::string> broken_reduce_scatter_rule(const Json& config, int stage) {
  constexpr const char* kReduceScatter = "zero_optimization.reduce_scatter";
  if (stage < 2) return std::nullopt;
  if (!read_bool(config, kReduceScatter).value_or(true)) {
    if (stage < 3 || !is_enabled(config, "zero_optimization.zero_quantized_gradients")) return std::nullopt;
    return fmt::format("zero_optimization.zero_quantized_gradients needs {}: it is false", kReduceScatter);
  }
  const Json* factor = find(config, "gradient_predivide_factor");
  const bool divides = factor != nullptr && factor->is_number() && *factor != 1;
  if (!divides && !is_enabled(config, "prescale_gradients")) return std::nullopt;
  return fmt::format("ZeRO 2 and 3 scale gradients before the reduction only if {} is false: {}{}", kReduceScatter,
                     divides ? "gradient_predivide_factor is " + shown(*factor) : "prescale_gradients is true",
                     but_stage(stage));
}

// Versions differ in the stages that allow master weights in 16 bit; no version allows stage 0.
std::optional<std::string> broken_master_rule(const Json& config, int stage) {
  if (stage != 0) return std::nullopt;
  for (const char* type : {"fp16", "bf16"}) {
    const std::string key = fmt::format("{0}.{0}_master_weights_and_grads", type);
    if (!is_enabled(config, std::string(type) + ".enabled") || !is_enabled(config, key)) continue;
    return fmt::format("master weights and gradients in {} need ZeRO: {} is true{}", type, key, but_stage(stage));
  }
  return std::nullopt;
}

bool is_older(const RuleOptions& options, const EngineVersion& version) {
  return options.engine_version && *options.engine_version < version;
}

// Muon orthogonalizes whole gradients, and reduce_scatter leaves a part of them.
std::optional<std::string> broken_muon_rule(const Json& config, int stage, const RuleOptions& options) {
  constexpr const char* kReduceScatter = "zero_optimization.reduce_scatter";
  if (stage == 0 || lower_case(read_string(config, "optimizer.type").value_or("")) != "muon") return std::nullopt;
  if (!read_bool(config, kReduceScatter).value_or(true)) return std::nullopt;
  const Json* device = find(config, "zero_optimization.offload_optimizer.device");
  const bool offloads = (device != nullptr && device->is_string() && *device != "none" && *device != "auto") ||
                        is_enabled(config, "zero_optimization.cpu_offload");
  const bool is_silent = stage < 3 && is_older(options, {0, 19, 3});
  if (is_silent && options.world_size != 1) {
    return fmt::format("DeepSpeed before 0.19.3 updates Muon's parameters wrongly unless {} is false: it is true",
                       kReduceScatter);
  }
  const bool refused = stage == 3 ? !is_older(options, {0, 18, 9}) : offloads && !is_silent;
  if (!refused) return std::nullopt;
  return fmt::format("Muon {} needs {} false: it is true", stage == 3 ? "at ZeRO 3" : "with an offloaded optimizer",
                     kReduceScatter);
}

// Versions before 0.19.6 do not know the key and ignore it.
std::optional<std::string> broken_sum_rule(const Json& config, int stage, const RuleOptions& options) {
  constexpr const char* kOperation = "gradient_allreduce_op";
  if (is_older(options, {0, 19, 6}) || read_string(config, kOperation) != "sum") return std::nullopt;
  const Json* zenflow = find(config, "zero_optimization.zenflow");
  const char* with = stage == 3                                   ? "ZeRO 3"
                     : zenflow != nullptr && zenflow->is_object() ? "ZenFlow"
                     : is_enabled(config, "compile.deepcompile")  ? "DeepCompile"
                                                                  : nullptr;
  if (with == nullptr) return std::nullopt;
  return fmt::format("sums of gradients do not work with {}: {} is sum", with, kOperation);
}

// The engine looks for gradients of a tensor type that processors do not have.
std::optional<std::string> broken_processor_rule(const Json& config, int stage, const RuleOptions& options) {
  constexpr const char* kContiguous = "zero_optimization.contiguous_gradients";
  if (!options.on_processors || (stage != 1 && stage != 2)) return std::nullopt;
  if (read_bool(config, kContiguous).value_or(true)) return std::nullopt;
  return fmt::format("on processors DeepSpeed reduces no gradient at ZeRO 1 and 2 without {}: it is false",
                     kContiguous);
}

std::optional<std::string> broken_nvme_rule(const Json& config, int stage) {
  if (stage != 3) return std::nullopt;
  for (const char* section : {"zero_optimization.offload_optimizer", "zero_optimization.offload_param"}) {
    const Json* offload = find(config, section);
    if (offload == nullptr || !offload->is_object() || offload->value("device", Json()) != "nvme") continue;
    if (read_string(*offload, "nvme_path")) continue;
    return fmt::format("{0}.device is nvme, and {0}.nvme_path is not given", section);
  }
  return std::nullopt;
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The rules are the same at every stage of ZeRO, so messages name none.
std::optional<std::string> broken_optimizer_rule(const Json& config, int stage) {
  if (stage == 0) return std::nullopt;
  if (is_enabled(config, "amp.enabled")) return "amp works only without ZeRO: amp.enabled is true; enable fp16 instead";
  const std::string written = read_string(config, "optimizer.type").value_or("Adam");
  const std::string name = lower_case(written);
  constexpr const char* kOwn = "remove 'optimizer' if the script passes its own";
  if (is_one_of(name, {"onebitadam", "zerooneadam", "onebitlamb"})) {
    return fmt::format("1-bit optimizers work only without ZeRO: optimizer.type is {}; name another one, or {}",
                       written, kOwn);
  }
  // muadam and muadamw are variants of Adam; only newer versions know muon.
  if (is_one_of(name, {"adam", "adamw", "adagrad", "lion", "muadam", "muadamw", "muon"})) return std::nullopt;
  if (is_enabled(config, "zero_allow_untested_optimizer")) return std::nullopt;
  return fmt::format(
      "ZeRO was not tested with this optimizer, and DeepSpeed stops: optimizer.type is {}; set "
      "zero_allow_untested_optimizer to true, or {}",
      written, kOwn);
}

}  // namespace

std::string but_stage(int stage) { return fmt::format(", but {} is {}", kStageKey, stage); }

std::optional<std::string> broken_engine_rule(const Json& config, int stage, const RuleOptions& options) {
  if (auto broken = broken_elasticity_rule(config)) return broken;
  if (auto broken = broken_optimizer_rule(config, stage)) return broken;
  if (auto broken = broken_reduce_scatter_rule(config, stage)) return broken;
  if (auto broken = broken_muon_rule(config, stage, options)) return broken;
  if (auto broken = broken_sum_rule(config, stage, options)) return broken;
  if (auto broken = broken_master_rule(config, stage)) return broken;
  if (auto broken = broken_processor_rule(config, stage, options)) return broken;
  return broken_nvme_rule(config, stage);
}

}  // namespace dsat::config
