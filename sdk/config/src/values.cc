// Reads single keys with a type. Absent, null and "auto" mean "not given". Any other type is refused with key and
// value.
#include "values.h"

#include <cctype>
#include <cmath>
#include <limits>

namespace dsat::config {
namespace {

// The value at `key`; nullptr: not given, so that DeepSpeed or its caller decides.
const Json* given(const Json& config, std::string_view key) {
  const Json* value = find(config, key);
  if (value == nullptr || value->is_null() || *value == "auto") return nullptr;
  return value;
}

}  // namespace

std::string shown(const Json& value) {
  constexpr size_t kMaxShown = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

void refuse_value(std::string_view key, const Json& value, std::string_view wanted) {
  throw Error(std::string(key) + " is " + shown(value) + "; it must be " + std::string(wanted));
}

std::optional<int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number == std::floor(number) && number >= -0x1p63 && number < 0x1p63) return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

std::optional<int64_t> read_integer(const Json& config, std::string_view key) {
  const Json* value = given(config, key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = as_integer(*value);
  if (!number) refuse_value(key, *value, "an integer");
  return number;
}

std::optional<int64_t> read_positive(const Json& config, std::string_view key) {
  const Json* value = given(config, key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = as_integer(*value);
  if (!number || *number < 1) refuse_value(key, *value, "a positive integer");
  return number;
}

std::optional<bool> read_bool(const Json& config, std::string_view key) {
  const Json* value = given(config, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_value(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> read_string(const Json& config, std::string_view key) {
  const Json* value = given(config, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_value(key, *value, "a string");
  return value->get<std::string>();
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace dsat::config
