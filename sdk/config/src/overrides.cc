// read_overrides(): the checks of a user's file, for what a strategy changes in it.
#include <algorithm>

#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "known_keys.h"
#include "values.h"

namespace dsat::config {
namespace {

bool has_unknown(const Json& config, const std::string& key) {
  const std::vector<UnknownKey> keys = unknown_keys(config);
  return std::any_of(keys.begin(), keys.end(), [&](const UnknownKey& unknown) { return unknown.key == key; });
}

void check_keys(const Json& base, const Json& overrides) {
  for (UnknownKey& unknown : unknown_keys(overrides)) {
    // No strategy has a reason to make up a dotted key: it takes an axis for its key.
    unknown.refused = unknown.refused || unknown.dotted;
    const std::string why = why_refused(unknown);
    if (!why.empty() && !has_unknown(base, unknown.key)) throw Error(why);
  }
}

// To the user's file a list is an axis, and a word in a section's place may be a wish; a trial has one value.
void check_single(const Json& overrides) {
  for (const auto& [key, value] : leaves_of(overrides)) {
    const KeyKind kind = key_kind(key);
    if (kind == KeyKind::kScalar && value.is_array()) refuse_value(key, value, "a single value");
    if (kind == KeyKind::kSection && value.is_string()) refuse_value(key, value, "a section in braces");
  }
}

}  // namespace

Json read_overrides(const Json& base, const Json& overrides) {
  check_keys(base, overrides);
  check_single(overrides);
  return canonical(overrides);
}

}  // namespace dsat::config
