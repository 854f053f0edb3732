// Parses sizes and durations in exact integer arithmetic. Prints them with three significant digits.
#include "dsat/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <limits>

#include "dsat/error.h"

namespace dsat {
namespace {

struct Unit {
  std::string_view name;  // lower case
  uint64_t factor;
};

constexpr uint64_t kKilo = 1000;
constexpr uint64_t kMega = 1000 * kKilo;
constexpr uint64_t kGiga = 1000 * kMega;
constexpr uint64_t kTera = 1000 * kGiga;
constexpr uint64_t kKibi = 1024;
constexpr uint64_t kMebi = 1024 * kKibi;
constexpr uint64_t kGibi = 1024 * kMebi;
constexpr uint64_t kTebi = 1024 * kGibi;
constexpr std::array<Unit, 14> kSizeUnits = {{{"", 1},
                                              {"b", 1},
                                              {"k", kKilo},
                                              {"kb", kKilo},
                                              {"m", kMega},
                                              {"mb", kMega},
                                              {"g", kGiga},
                                              {"gb", kGiga},
                                              {"t", kTera},
                                              {"tb", kTera},
                                              {"kib", kKibi},
                                              {"mib", kMebi},
                                              {"gib", kGibi},
                                              {"tib", kTebi}}};
constexpr std::array<Unit, 4> kDurationUnits = {{{"", 1000}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}}};

// Byte counts are signed 64-bit integers elsewhere. A duration must survive a conversion to nanoseconds.
constexpr uint64_t kMaxBytes = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMaxMilliseconds = uint64_t{10} * 365 * 24 * 3600 * 1000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

struct Quantity {
  std::string_view whole;     // digits, at least one
  std::string_view fraction;  // digits, may be empty
  std::string unit;           // lower case
};

// Splits "1.5 GB". False: the text does not have this form.
bool split(std::string_view text, Quantity* out) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  size_t at = 0;
  while (at < text.size() && is_digit(text[at])) ++at;
  out->whole = text.substr(0, at);
  if (out->whole.empty()) return false;
  if (at < text.size() && text[at] == '.') {
    const size_t begin = ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
    out->fraction = text.substr(begin, at - begin);
    if (out->fraction.empty()) return false;
  }
  while (at < text.size() && is_blank(text[at])) ++at;
  for (; at < text.size(); ++at) {
    out->unit += static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
  }
  return true;
}

// whole.fraction x factor, rounded down, in exact integer arithmetic. False: the product exceeds `limit`.
bool multiply(const Quantity& quantity, uint64_t factor, uint64_t limit, uint64_t* out) {
  uint64_t whole = 0;
  for (const char c : quantity.whole) {
    const auto digit = static_cast<uint64_t>(c - '0');
    if (whole > (limit - digit) / 10) return false;
    whole = whole * 10 + digit;
  }
  if (whole > limit / factor) return false;
  // From the last digit to the first: to round down at each step gives the same as to round down once.
  uint64_t part = 0;
  for (size_t i = quantity.fraction.size(); i-- > 0;) {
    part = (static_cast<uint64_t>(quantity.fraction[i] - '0') * factor + part) / 10;
  }
  *out = whole * factor;
  if (part > limit - *out) return false;
  *out += part;
  return true;
}

template <size_t N>
uint64_t parse_quantity(std::string_view text, const std::array<Unit, N>& units, uint64_t limit, const char* what,
                        const char* wanted) {
  Quantity quantity;
  if (!split(text, &quantity)) throw Error(fmt::format("'{}' is not a {}; write {}", text, what, wanted));
  for (const Unit& unit : units) {
    if (unit.name != quantity.unit) continue;
    uint64_t value = 0;
    if (!multiply(quantity, unit.factor, limit, &value))
      throw Error(fmt::format("'{}' is too large for a {}", text, what));
    return value;
  }
  throw Error(fmt::format("'{}' is not a {}: unknown unit; write {}", text, what, wanted));
}

}  // namespace

uint64_t parse_size(std::string_view text) {
  return parse_quantity(text, kSizeUnits, kMaxBytes, "size",
                        "a number and kB, MB, GB, TB, KiB, MiB, GiB or TiB, such as 512MiB (no unit: bytes)");
}

std::chrono::milliseconds parse_duration(std::string_view text) {
  const uint64_t value = parse_quantity(text, kDurationUnits, kMaxMilliseconds, "duration",
                                        "a number and s, m or h, such as 15m (no unit: seconds)");
  return std::chrono::milliseconds(static_cast<int64_t>(value));
}

std::string format_size(double bytes) {
  if (!std::isfinite(bytes)) return "unknown";
  constexpr std::array<const char*, 7> kNames = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = std::fabs(bytes);
  size_t unit = 0;
  // 999.5 has three digits as 1000, so it belongs to the next unit.
  while (value >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{}{:.{}f} {}", bytes < 0 ? "-" : "", value, decimals, kNames[unit]);
}

std::string format_duration(std::chrono::milliseconds duration) {
  const int64_t total_ms = duration.count();
  if (total_ms < 0) return "-" + format_duration(std::chrono::milliseconds(-total_ms));
  if (total_ms < 1000) return fmt::format("{} ms", total_ms);
  if (total_ms < 59950) return fmt::format("{:.1f} s", static_cast<double>(total_ms) / 1000);
  const int64_t seconds = (total_ms + 500) / 1000;
  if (seconds < 3600) return fmt::format("{}m {}s", seconds / 60, seconds % 60);
  const int64_t minutes = (seconds + 30) / 60;
  return fmt::format("{}h {}m", minutes / 60, minutes % 60);
}

}  // namespace dsat
