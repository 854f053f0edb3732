// Trials, metrics and tables as text for people. Threading: pure functions.
#ifndef DSAT_CLI_TERMINAL_FORMAT_H_
#define DSAT_CLI_TERMINAL_FORMAT_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/host/format.h"
#include "dsat/host/record.h"

namespace dsat::cli {

using host::format_count;
using host::format_metric;
// A metric of a metrics object; "-" where it is not there.
std::string format_metric(const std::string& metric, const Json& metrics);

// Of a trial's configuration; nullopt: not told.
std::optional<int64_t> zero_stage_of(const Json& config);
std::optional<int64_t> micro_batch_of(const Json& config);
std::string or_dash(const std::optional<int64_t>& value);
std::string bytes_or_dash(const std::optional<uint64_t>& bytes);

// The first row is the heading; columns are two blanks apart, those of `right` flush right.
std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_FORMAT_H_
