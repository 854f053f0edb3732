// The values of a trial as text for a line or a cell; "-" if unknown. Threading: pure functions. Errors: none.
#ifndef DSAT_CLI_TERMINAL_FORMAT_H_
#define DSAT_CLI_TERMINAL_FORMAT_H_

#include <optional>
#include <string>

#include "dsat/host/format.h"
#include "dsat/host/record.h"

namespace dsat::cli {

using host::format_count;
using host::format_metric;
// A metric of a metrics object; "-" if it is missing.
std::string format_metric(const std::string& metric, const Json& metrics);

// Values of a trial's configuration; nullopt: missing or not an integer.
std::optional<int64_t> zero_stage_of(const Json& config);
std::optional<int64_t> micro_batch_of(const Json& config);
std::string or_dash(const std::optional<int64_t>& value);
std::string bytes_or_dash(const std::optional<uint64_t>& bytes);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_FORMAT_H_
