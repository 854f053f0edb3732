// Comma-separated values. Fields may be quoted; a quote within is doubled (RFC 4180). Threading: pure functions.
#ifndef DSAT_HOST_SIM_CSV_H_
#define DSAT_HOST_SIM_CSV_H_

#include <string>
#include <string_view>
#include <vector>

namespace dsat::host::sim {

// Returns lines of fields without empty lines. Throws dsat::Error for a quote that is not closed.
std::vector<std::vector<std::string>> parse_csv(std::string_view text, const std::string& file);

// Returns a quoted field that parse_csv can read.
std::string csv_field(const std::string& text);

}  // namespace dsat::host::sim

#endif  // DSAT_HOST_SIM_CSV_H_
