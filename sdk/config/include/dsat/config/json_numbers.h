// Numbers at the keys of a configuration or of a record.
//
// Threading: pure functions. Units: those of the key.
#ifndef DSAT_CONFIG_JSON_NUMBERS_H_
#define DSAT_CONFIG_JSON_NUMBERS_H_

#include <optional>
#include <string_view>

#include "dsat/config/json.h"

namespace dsat::config {

// The number at a dotted key. nullopt: there is none, or what is there is no number.
std::optional<double> number_at(const Json& config, std::string_view key);

// The whole number at a dotted key; defined for the types of whole_number(). nullopt: there is none, or null. Anything
// else, and a number that T cannot hold, is an Error (DSAT_DATA_LOSS) that names the key.
template <class T>
std::optional<T> whole_number_at(const Json& config, std::string_view key);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_JSON_NUMBERS_H_
