// The times of journals, RFC 3339 in UTC, as numbers. Threading: pure functions. Errors: none.
#ifndef DSAT_CLI_TERMINAL_TIMES_H_
#define DSAT_CLI_TERMINAL_TIMES_H_

#include <cstdint>
#include <string>

namespace dsat::cli {

// Microseconds since 1970; 0: empty, or no such time.
int64_t microseconds_of(const std::string& time);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_TIMES_H_
