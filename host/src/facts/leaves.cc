// Walks a configuration depth first, and compares two of them leaf by leaf.
// Numbers are compared by value: 5e8 and 500000000 are one.
#include "facts/leaves.h"

#include <map>

namespace dsat::host {
namespace {

void collect(const Json& object, const std::string& prefix, std::vector<Leaf>& leaves) {
  for (const auto& item : object.items()) {
    if (prefix.empty() && item.key() == "autotuning") continue;
    const std::string key = prefix + item.key();
    if (item.value().is_object() && !item.value().empty()) {
      collect(item.value(), key + ".", leaves);
    } else {
      leaves.emplace_back(key, item.value());
    }
  }
}

}  // namespace

std::vector<Leaf> leaves_of(const Json& config) {
  std::vector<Leaf> leaves;
  if (config.is_object()) collect(config, "", leaves);
  return leaves;
}

std::vector<ConfigChange> changes_between(const Json& own, const Json& best) {
  std::map<std::string, Json> left;
  std::vector<Leaf> own_leaves = leaves_of(own);
  for (const Leaf& leaf : own_leaves) left.insert(leaf);
  std::vector<ConfigChange> changes;
  for (const auto& [key, value] : leaves_of(best)) {
    const auto at = left.find(key);
    if (at == left.end()) {
      changes.push_back({key, Json(), value});
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
