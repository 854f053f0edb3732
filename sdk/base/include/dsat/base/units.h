// Sizes and durations as people write them; the one parser of all programs. Errors: dsat::Error, naming the text.
#ifndef DSAT_BASE_UNITS_H_
#define DSAT_BASE_UNITS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace dsat {

// "512MiB", "1.5 GB", "80G", "4096": digits, optional decimals, optional unit in any case. kB MB GB TB = 10^3n (K, M, G
// and T mean the same), KiB MiB GiB TiB = 2^10n, none = bytes. Rounded down to whole bytes.
uint64_t parse_size(std::string_view text);

// "90" or "90s" seconds, "15m", "2h"; decimals allowed.
std::chrono::milliseconds parse_duration(std::string_view text);

// For people: "1.23 GB", "640 kB", "12 B" (10^3n, three significant digits); "2h 5m", "12.3 s", "85 ms".
std::string format_size(double bytes);
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace dsat

#endif  // DSAT_BASE_UNITS_H_
