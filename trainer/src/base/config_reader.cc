// Looks keys up, checks type and range, and says in one line what was there and what was expected.
// Numbers are read as doubles, so that 5e8 and 500000000 are the same integer.
#include "base/config_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "dsat/config/json.h"

namespace dsat::trainer {
namespace {

[[noreturn]] void refuse(const std::string& key, const Json& value, const std::string& expected) {
  throw Error(fmt::format("{} is {}; expected {}", key, value.dump(), expected));
}

std::string range(const char* what, double low, double high) {
  return fmt::format("{} from {:.6g} to {:.6g}", what, low, high);
}

}  // namespace

const Json* given(const Json& config, const std::string& key) {
  const Json* value = config::find(config, key);
  if (value == nullptr || value->is_null()) return nullptr;
  return value->is_string() && value->get_ref<const std::string&>() == "auto" ? nullptr : value;
}

bool read_bool(const Json& config, const std::string& key, bool otherwise) {
  const Json* value = given(config, key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) refuse(key, *value, "true or false");
  return value->get<bool>();
}

double read_number(const Json& config, const std::string& key, double otherwise, double low, double high) {
  const Json* value = given(config, key);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) refuse(key, *value, range("a number", low, high));
  const double number = value->get<double>();
  if (!(number >= low && number <= high)) refuse(key, *value, range("a number", low, high));
  return number;
}

int64_t read_integer(const Json& config, const std::string& key, int64_t otherwise, int64_t low, int64_t high) {
  const double number =
      read_number(config, key, static_cast<double>(otherwise), static_cast<double>(low), static_cast<double>(high));
  if (number != std::floor(number)) refuse(key, *given(config, key), "an integer");
  return static_cast<int64_t>(number);
}

std::string read_string(const Json& config, const std::string& key, const std::string& otherwise) {
  const Json* value = given(config, key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) refuse(key, *value, "a string");
  return value->get<std::string>();
}

bool is_enabled(const Json& config, const std::string& key) {
  const Json* value = given(config, key);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  return value->is_object() && read_bool(config, key + ".enabled", false);
}

}  // namespace dsat::trainer
