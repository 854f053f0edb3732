// One function a rule. Only what every version of DeepSpeed refuses is a rule (docs/real-deepspeed.md).
#include "engine_rules.h"

#include <fmt/format.h>

namespace dsat::config {
namespace {

// As Python reads a value that should be a flag.
bool is_enabled(const Json& config, std::string_view key) {
  const Json* value = find(config, key);
  if (value == nullptr) return false;
  return value->is_boolean() ? value->get<bool>() : value->is_number() && *value != 0;
}

// It writes its own sizes over those of the trial, or stops at them.
std::optional<std::string> broken_elasticity_rule(const Json& config) {
  if (!is_enabled(config, "elasticity.enabled")) return std::nullopt;
  return "elasticity.enabled is true, and DeepSpeed then chooses the batch sizes itself; set it to false for tuning";
}

}  // namespace

std::optional<std::string> broken_engine_rule(const Json& config, int) { return broken_elasticity_rule(config); }

}  // namespace dsat::config
