// Rejects numbers that no machine can reach. Such a number is an accident, and it would win every comparison.
// Threading: pure functions. Units as in read_metrics.h.
#ifndef DSAT_HOST_OUTPUTS_PLAUSIBLE_H_
#define DSAT_HOST_OUTPUTS_PLAUSIBLE_H_

#include <string>
#include <string_view>

#include "outputs/trial_report.h"

namespace dsat::host {

// A result is a dozen numbers; 1 MiB leaves room for anything else that a script writes into the file.
inline constexpr size_t kMaxResultBytes = size_t{1} << 20;

// No model, device or world has a count above this.
inline constexpr double kMostCount = 1e15;

// Returns "" or what is wrong: "FLOPS_per_gpu is 1.7e+308, which no machine reaches".
std::string why_implausible(std::string_view metric, double value);

// Notes in the report that `metric` was left out, and adds a warning with the file and the reason.
void leave_out(const std::string& metric, const std::string& file_name, const std::string& why, TrialReport& report);

// Leaves implausible metrics out of the report, each with a warning. Throws dsat::Error if none is left.
void keep_plausible(const std::string& file_name, TrialReport& report);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_PLAUSIBLE_H_
