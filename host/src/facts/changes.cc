// Compares the leaves of two configurations. Numbers are compared by value: 5e8 equals 500000000.
#include <filesystem>
#include <map>

#include "dsat/config/defaults.h"
#include "dsat/config/rules.h"
#include "facts/sections.h"

namespace dsat::host {

std::vector<config::Leaf> leaves_without_autotuning(const Json& config) {
  if (config::find(config, "autotuning") == nullptr) return config::leaves_of(config);
  Json rest = config;
  config::erase(rest, "autotuning");
  return config::leaves_of(rest);
}

std::optional<Json> own_as_given(const Json& plan, const Json& settings) {
  const Json simulation = plan.value("simulation", Json()), command = plan.value("command", Json());
  if (simulation.is_object() && simulation.contains("trace") && command.empty()) {
    const std::filesystem::path trace = simulation.value("file", std::string());
    if (plan.value("config_file", std::string()) == trace.stem()) return std::nullopt;
  }
  Json own = plan.value("user_config", Json::object());
  const Json base = settings.value("base_config", Json::object());
  for (const auto& [key, value] : config::leaves_of(own)) {
    const Json* first = value.is_array() ? config::find(base, key) : nullptr;
    if (first != nullptr) config::set(own, key, *first);
  }
  return own;
}

std::vector<ConfigChange> changes_between(const Json& own, const Json& best) {
  std::map<std::string, Json> left;
  const std::vector<config::Leaf> own_leaves = leaves_without_autotuning(own);
  for (const config::Leaf& leaf : own_leaves) left.insert(leaf);
  std::vector<ConfigChange> changes;
  const int stage = config::zero_stage(best);
  for (const auto& [key, value] : leaves_without_autotuning(best)) {
    const auto at = left.find(key);
    if (at == left.end()) {
      if (value != config::deepspeed_default(key, stage)) changes.push_back({key, Json(), value});
      continue;
    }
    if (at->second != value) changes.push_back({key, at->second, value});
    left.erase(at);
  }
  for (const auto& [key, value] : own_leaves) {
    if (left.count(key) != 0) changes.push_back({key, value, Json()});
  }
  return changes;
}

}  // namespace dsat::host
