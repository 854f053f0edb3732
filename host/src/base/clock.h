// Wall-clock times as the project writes them: RFC 3339, UTC, exactly six fractional digits.
#ifndef DSAT_HOST_BASE_CLOCK_H_
#define DSAT_HOST_BASE_CLOCK_H_

#include <chrono>
#include <optional>
#include <string>

namespace dsat::host {

// "2026-03-01T09:30:00.000125Z". Fixed width, so that times sort as texts.
std::string format_rfc3339(std::chrono::system_clock::time_point time);

// The time of such a text; nullopt: it is none.
std::optional<std::chrono::system_clock::time_point> parse_rfc3339(const std::string& text);

std::string utc_now();

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_CLOCK_H_
