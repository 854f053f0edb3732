// What a trial may say and what no machine reaches: a number beyond it is an accident, and it would win every
// comparison.
//
// Threading: pure functions. Units as in read_metrics.h.
#ifndef DSAT_HOST_OUTPUTS_PLAUSIBLE_H_
#define DSAT_HOST_OUTPUTS_PLAUSIBLE_H_

#include <string>
#include <string_view>

#include "outputs/read_metrics.h"

namespace dsat::host {

// A result is a dozen numbers; 1 MiB is room for whatever else a script puts beside them.
inline constexpr size_t kMaxResultBytes = size_t{1} << 20;

// The most that a model, a device or a world counts of anything.
inline constexpr double kMostCount = 1e15;

// "" or what is wrong with the value of a metric: "FLOPS_per_gpu is 1.7e+308, which no machine reaches".
std::string why_implausible(std::string_view metric, double value);

// A metric is not taken over into the report, for this reason: a warning that names the file.
void leave_out(const std::string& metric, const std::string& file_name, const std::string& why, TrialReport& report);

// Leaves such metrics out of a report, each with a warning that names the file. Throws dsat::Error when none is left.
void keep_plausible(const std::string& file_name, TrialReport& report);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_PLAUSIBLE_H_
