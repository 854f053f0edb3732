// The text report of DeepSpeed's flops profiler. A trial whose script writes no metrics is measured by this report.
//
// The wording of every DeepSpeed version that reports whole iterations is understood ("params per gpu", "params per
// GPU", "params per device"; "FLOPS per GPU" with and without a formula). Threading: pure functions.
#ifndef DSAT_HOST_OUTPUTS_FLOPS_PROFILER_REPORT_H_
#define DSAT_HOST_OUTPUTS_FLOPS_PROFILER_REPORT_H_

#include <string>
#include <string_view>

#include "dsat/error.h"
#include "outputs/read_metrics.h"

namespace dsat::host {

// Whether flops_profiler is enabled and writes to a file.
bool asks_for_flops_report(const Json& config);

// Returns canonical metrics. The report is about one micro step; latency is that of an optimizer step, with all micro
// steps of `config`'s accumulation. Throws dsat::Error: the report is torn, or has only the forward pass (DeepSpeed
// times the rest only with wall_clock_breakdown).
TrialReport read_flops_report(std::string_view text, const std::string& file_name, const Json& config);

// Reads num_params and the other figures of the model, for a trial that writes no model-information result.
TrialReport read_flops_model_info(std::string_view text, const std::string& file_name);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_FLOPS_PROFILER_REPORT_H_
