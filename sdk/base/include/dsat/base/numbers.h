// Numbers from text. The whole text must be the number: no blank, no unit.
//
// Threading: pure functions, the same under every locale. Errors: nullopt.
#ifndef DSAT_BASE_NUMBERS_H_
#define DSAT_BASE_NUMBERS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace dsat {

// A decimal integer from `low` to `high`, "-" allowed before it, "+" not.
std::optional<int64_t> parse_integer(std::string_view text, int64_t low = std::numeric_limits<int64_t>::min(),
                                     int64_t high = std::numeric_limits<int64_t>::max());

// A whole number from 0 to the largest int.
std::optional<int> parse_count(std::string_view text);

// A finite decimal number, with or without an exponent. "nan", "inf" and numbers out of a double's range: nullopt.
std::optional<double> parse_number(std::string_view text);

}  // namespace dsat

#endif  // DSAT_BASE_NUMBERS_H_
