// read_overrides(): checks a strategy's overrides like a user's configuration, and more strictly.
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
    // A strategy has no reason for a dotted key: it copies the keys of the axes.
    unknown.refused = unknown.refused || unknown.dotted;
    const std::string why = why_refused(unknown);
    if (!why.empty() && !has_unknown(base, unknown.key)) throw Error(why);
  }
}

// Refuses lists and words in place of sections. A user's configuration may have them for axes and wishes; a trial may
// not.
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
