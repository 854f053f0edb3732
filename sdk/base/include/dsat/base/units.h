// Sizes and durations as text. All programs use these parsers. Errors: dsat::Error that names the text.
#ifndef DSAT_BASE_UNITS_H_
#define DSAT_BASE_UNITS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace dsat {

// "512MiB", "1.5 GB", "80G", "4096": digits, optional decimals, optional unit in any case. kB MB GB TB = 10^3n, also
// without the B; KiB MiB GiB TiB = 2^10n; no unit: bytes. Rounded down to whole bytes.
uint64_t parse_size(std::string_view text);

// "90" or "90s" (seconds), "15m", "2h". Decimals are allowed.
std::chrono::milliseconds parse_duration(std::string_view text);

// "1.23 GB", "640 kB", "12 B" (10^3n, three significant digits); "2h 5m", "12.3 s", "85 ms".
std::string format_size(double bytes);
std::string format_duration(std::chrono::milliseconds duration);

}  // namespace dsat

#endif  // DSAT_BASE_UNITS_H_
