// The keys in DeepSpeed's documentation, as a table.
#ifndef DSAT_CONFIG_SRC_KNOWN_KEYS_H_
#define DSAT_CONFIG_SRC_KNOWN_KEYS_H_

#include <string>
#include <string_view>
#include <vector>

#include "dsat/config/rules.h"

namespace dsat::config {

enum class KeyKind {
  kUnknown,
  kScalar,   // a number, string or bool
  kList,     // a list to DeepSpeed itself
  kSection,  // an object whose members the table lists
  kFree,     // an object or list that is passed on unread: optimizer parameters, compression settings, ..
};

// The kind of a dotted key. Everything below a free key is kFree.
KeyKind key_kind(std::string_view key);

// The names of a section's members, in the table's order. "" is the top level.
const std::vector<std::string>& section_members(std::string_view section);

// Describes a key that DeepSpeed does not know (unknown_keys.cc). `name`: unknown to key_kind() in `section`.
UnknownKey describe_unknown(const std::string& section, const std::string& name);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_KNOWN_KEYS_H_
