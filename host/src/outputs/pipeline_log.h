// The steps that DeepSpeed's pipeline engine prints: it writes no metric file, so they are its trials' metrics.
//
// Threading: pure functions. Errors: none; a line whose numbers make no sense is left out.
#ifndef DSAT_HOST_OUTPUTS_PIPELINE_LOG_H_
#define DSAT_HOST_OUTPUTS_PIPELINE_LOG_H_

#include <optional>
#include <string>
#include <vector>

#include "outputs/read_metrics.h"
#include "outputs/step_log.h"

namespace dsat::host {

// throughput and latency of the step in the middle of the window's, and their spread where there are three. Without a
// line of the window (the log's begin was not read, the user's steps_per_print is larger) all later ones count.
// nullopt: the lines do not go beyond the window, or there are none.
std::optional<TrialReport> read_pipeline_log(const std::vector<std::string>& lines, ProfileWindow window,
                                             const Json& config);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_PIPELINE_LOG_H_
