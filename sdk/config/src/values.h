// Typed reading of single keys. "auto", null and absence all mean "not given"; any other type than the wanted one is an
// Error that names the key, what it has and what it wants.
#ifndef DSAT_CONFIG_SRC_VALUES_H_
#define DSAT_CONFIG_SRC_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dsat/config/json.h"

namespace dsat::config {

// Integers, and floats without a fraction: 5e8 is how DeepSpeed's own examples write a bucket size.
std::optional<int64_t> as_integer(const Json& value);

std::optional<int64_t> read_integer(const Json& config, std::string_view key);
std::optional<int64_t> read_positive(const Json& config, std::string_view key);
std::optional<bool> read_bool(const Json& config, std::string_view key);
std::optional<std::string> read_string(const Json& config, std::string_view key);

// "key is VALUE; it must be WANTED", the value cut short when it is long.
[[noreturn]] void refuse_value(std::string_view key, const Json& value, std::string_view wanted);

// A value as messages show it.
std::string shown(const Json& value);

// ASCII letters alone.
std::string lower_case(std::string text);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_VALUES_H_
