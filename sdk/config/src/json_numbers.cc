// Numbers at keys, checked before they are converted.
#include "dsat/config/json_numbers.h"

#include <fmt/format.h>

#include <cstdint>

namespace dsat::config {

std::optional<double> number_at(const Json& config, std::string_view key) {
  const Json* value = find(config, key);
  return value != nullptr && value->is_number() ? std::optional<double>(value->get<double>()) : std::nullopt;
}

template <class T>
std::optional<T> whole_number_at(const Json& config, std::string_view key) {
  const Json* value = find(config, key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  try {
    return whole_number<T>(*value);
  } catch (const Error& error) {
    throw Error(DSAT_DATA_LOSS, fmt::format("its {} {}", key, error.what()));
  }
}
template std::optional<int> whole_number_at(const Json&, std::string_view);
template std::optional<int64_t> whole_number_at(const Json&, std::string_view);
template std::optional<uint32_t> whole_number_at(const Json&, std::string_view);
template std::optional<uint64_t> whole_number_at(const Json&, std::string_view);

}  // namespace dsat::config
