// Formats wall-clock times as RFC 3339.
// gmtime_r breaks a time down; its microseconds become exactly six fractional digits.
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

std::string utc_now() { return format_rfc3339(std::chrono::system_clock::now()); }

}  // namespace dsat::host
