// Reads the steps that DeepSpeed's pipeline engine prints. This engine writes no metric file, so these are its metrics.
// Threading: pure functions. Errors: none; a line whose numbers make no sense is left out.
#ifndef DSAT_HOST_OUTPUTS_PIPELINE_LOG_H_
#define DSAT_HOST_OUTPUTS_PIPELINE_LOG_H_

#include <optional>
#include <string>
#include <vector>

#include "outputs/read_metrics.h"
#include "outputs/step_log.h"

namespace dsat::host {

// Returns throughput and latency of the median step of the window, and their spread if there are three steps. All later
// steps count if no line of the window was read (the log's begin is missing, or steps_per_print is large). nullopt:
// there are no lines, or none after the window.
std::optional<TrialReport> read_pipeline_log(const std::vector<std::string>& lines, ProfileWindow window,
                                             const Json& config);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_PIPELINE_LOG_H_
