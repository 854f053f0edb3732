// Parses numbers with std::from_chars, which ignores the locale and accepts no blanks.
#include "dsat/base/numbers.h"

#include <charconv>
#include <cmath>

namespace dsat {

namespace {

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text, int64_t low, int64_t high) {
  const std::optional<int64_t> value = parse<int64_t>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<int> parse_count(std::string_view text) {
  const std::optional<int64_t> value = parse_integer(text, 0, std::numeric_limits<int>::max());
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> value = parse<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace dsat
