// What of a trial stands in a line or a cell for people; "-" is what is not known. Threading: pure functions. Errors:
// none.
#ifndef DSAT_CLI_TERMINAL_FORMAT_H_
#define DSAT_CLI_TERMINAL_FORMAT_H_

#include <optional>
#include <string>

#include "dsat/host/format.h"
#include "dsat/host/record.h"

namespace dsat::cli {

using host::format_count;
using host::format_metric;
// A metric of a metrics object; "-" where it is not there.
std::string format_metric(const std::string& metric, const Json& metrics);

// Values of a trial's configuration; nullopt: it has none, or no integer there.
std::optional<int64_t> zero_stage_of(const Json& config);
std::optional<int64_t> micro_batch_of(const Json& config);
std::string or_dash(const std::optional<int64_t>& value);
std::string bytes_or_dash(const std::optional<uint64_t>& bytes);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_FORMAT_H_
