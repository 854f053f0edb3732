// Formats and reads wall-clock times as RFC 3339, with exactly six fractional digits.
#include "base/clock.h"

#include <fmt/format.h>

#include <ctime>

namespace dsat::host {

std::string format_rfc3339(std::chrono::system_clock::time_point time) {
  using std::chrono::microseconds;
  const auto since_epoch = std::chrono::floor<microseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const auto fraction = (since_epoch - seconds).count();
  const std::time_t whole = static_cast<std::time_t>(seconds.count());
  std::tm utc{};
  gmtime_r(&whole, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, fraction);
}

std::optional<std::chrono::system_clock::time_point> parse_rfc3339(const std::string& text) {
  std::tm utc{};
  int microseconds = 0, read = 0;
  const int fields = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ%n", &utc.tm_year, &utc.tm_mon,
                                 &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &microseconds, &read);
  constexpr int kFields = 7;
  if (fields != kFields || read != static_cast<int>(text.size())) return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return std::chrono::system_clock::from_time_t(timegm(&utc)) + std::chrono::microseconds(microseconds);
}

std::string utc_now() { return format_rfc3339(std::chrono::system_clock::now()); }

}  // namespace dsat::host
