// Naming one key that DeepSpeed does not know; shared by the configuration's check and the space file's.
#ifndef DSAT_CONFIG_SRC_UNKNOWN_KEY_H_
#define DSAT_CONFIG_SRC_UNKNOWN_KEY_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "dsat/config/rules.h"

namespace dsat::config {

// Damerau-Levenshtein distance (neighbouring letters swapped count one; no letter is edited twice).
size_t edit_distance(std::string_view a, std::string_view b);

// For a `name` that key_kind() does not know in `section` ("" is the top level).
UnknownKey describe_unknown(const std::string& section, const std::string& name);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_UNKNOWN_KEY_H_
