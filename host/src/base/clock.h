// Wall-clock times in the project's format: RFC 3339, UTC, six fractional digits.
#ifndef DSAT_HOST_BASE_CLOCK_H_
#define DSAT_HOST_BASE_CLOCK_H_

#include <chrono>
#include <optional>
#include <string>

namespace dsat::host {

// Returns "2026-03-01T09:30:00.000125Z". The width is fixed, so times sort as texts.
std::string format_rfc3339(std::chrono::system_clock::time_point time);

// Parses such a text; nullopt: it has another form.
std::optional<std::chrono::system_clock::time_point> parse_rfc3339(const std::string& text);

std::string utc_now();

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_CLOCK_H_
