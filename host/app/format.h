// Trials, metrics and tables as text for people. Threading: pure functions.
#ifndef DSAT_APP_FORMAT_H_
#define DSAT_APP_FORMAT_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/host/record.h"

namespace dsat::cli {

// "12.3 TFLOP/s", "456 samples/s", "7.89 ms": a canonical metric by its name.
std::string format_metric(const std::string& metric, double value);
// The same from a metrics object; "-" where it is not there.
std::string format_metric(const std::string& metric, const Json& metrics);

// Three significant digits with a prefix: "7.5 G", "124 M"; for counts and rates.
std::string format_count(double value);

// Of a trial's configuration; nullopt: not told.
std::optional<int64_t> zero_stage_of(const Json& config);
std::optional<int64_t> micro_batch_of(const Json& config);
std::string or_dash(const std::optional<int64_t>& value);
std::string bytes_or_dash(const std::optional<uint64_t>& bytes);

// The first row is the heading; columns are two blanks apart, those of `right` flush right.
std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

}  // namespace dsat::cli

#endif  // DSAT_APP_FORMAT_H_
