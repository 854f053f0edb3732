// Typed reading of single keys. "auto", null and absence mean "not given". A wrong type is an Error that names the key,
// its value and the right type.
#ifndef DSAT_CONFIG_SRC_VALUES_H_
#define DSAT_CONFIG_SRC_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dsat/config/json.h"

namespace dsat::config {

// Reads an integer or a float without a fraction, because DeepSpeed's examples write bucket sizes as 5e8.
std::optional<int64_t> as_integer(const Json& value);

std::optional<int64_t> read_integer(const Json& config, std::string_view key);
std::optional<int64_t> read_positive(const Json& config, std::string_view key);
std::optional<bool> read_bool(const Json& config, std::string_view key);
std::optional<std::string> read_string(const Json& config, std::string_view key);

// Throws "KEY is VALUE; it must be WANTED". A long value is shortened.
[[noreturn]] void refuse_value(std::string_view key, const Json& value, std::string_view wanted);

// The text of a value for messages.
std::string shown(const Json& value);

// Lowers ASCII letters only.
std::string lower_case(std::string text);

}  // namespace dsat::config

#endif  // DSAT_CONFIG_SRC_VALUES_H_
