// The text report of DeepSpeed's flops profiler: what is left to tune by where a script writes no metrics.
//
// Read in the wording of every DeepSpeed that reports whole iterations ("params per gpu", "params per GPU", "params per
// device"; "FLOPS per GPU" with and without the formula after it). Threading: pure functions.
#ifndef DSAT_HOST_OUTPUTS_FLOPS_PROFILER_REPORT_H_
#define DSAT_HOST_OUTPUTS_FLOPS_PROFILER_REPORT_H_

#include <string>
#include <string_view>

#include "dsat/error.h"
#include "outputs/read_metrics.h"

namespace dsat::host {

// flops_profiler is enabled and writes to a file.
bool asks_for_flops_report(const Json& config);

// Canonical metrics of the one iteration that was profiled, which is one micro step: latency is that of an optimizer
// step, all micro steps of `config`'s accumulation. Throws dsat::Error: torn, or the forward pass alone (DeepSpeed
// times the rest only with wall_clock_breakdown).
TrialReport read_flops_report(std::string_view text, const std::string& file_name, const Json& config);

// The same report in place of a model-information result: num_params and what else it has of the model.
TrialReport read_flops_model_info(std::string_view text, const std::string& file_name);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_FLOPS_PROFILER_REPORT_H_
