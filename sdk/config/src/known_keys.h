// The keys that DeepSpeed's documentation knows, as a table. known_keys.cc holds nothing but the table and its lookup.
#ifndef DSAT_CONFIG_SRC_KNOWN_KEYS_H_
#define DSAT_CONFIG_SRC_KNOWN_KEYS_H_

#include <string>
#include <string_view>
#include <vector>

namespace dsat::config {

enum class KeyKind {
  kUnknown,
  kScalar,   // a number, string or bool
  kList,     // DeepSpeed itself wants a list there
  kSection,  // an object whose members the table lists
  kFree,     // an object (or list) that is handed on as it is: optimizer parameters, compression settings, ..
};

// What stands at a dotted key. Everything below a free key is kFree.
KeyKind key_kind(std::string_view key);

// The members of a section by name ("" is the top level), in the table's order.
const std::vector<std::string>& section_members(std::string_view section);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_KNOWN_KEYS_H_
