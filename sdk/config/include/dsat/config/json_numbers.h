// Numbers at the keys of a configuration or of a record.
//
// Threading: pure functions. Units: the unit of the key.
#ifndef DSAT_CONFIG_JSON_NUMBERS_H_
#define DSAT_CONFIG_JSON_NUMBERS_H_

#include <optional>
#include <string_view>

#include "dsat/config/json.h"

namespace dsat::config {

// The number at a dotted key. nullopt: no number is there.
std::optional<double> number_at(const Json& config, std::string_view key);

// The whole number at a dotted key, for the types of whole_number(). nullopt: absent or null. Anything else, and a
// number out of T's range, is an Error (DSAT_DATA_LOSS) that names the key.
template <class T>
std::optional<T> whole_number_at(const Json& config, std::string_view key);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_JSON_NUMBERS_H_
