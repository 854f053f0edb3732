// Reads what a trial wrote into canonical metrics. docs/trial.md has the rules.
// Threading: pure functions. Units: forward, backward, step, latency and wall_latency in microseconds, throughput in
// samples per second over all devices, FLOPS_per_gpu in FLOP/s.
#ifndef DSAT_HOST_OUTPUTS_READ_METRICS_H_
#define DSAT_HOST_OUTPUTS_READ_METRICS_H_

#include <string>
#include <string_view>

#include "dsat/host/metric.h"
#include "outputs/trial_report.h"

namespace dsat::host {

// A part of the warning that throughput, latency and batch size do not agree; all trials of such a script have it.
inline constexpr std::string_view kMeasuresElse = "the script measures something else";

// Reads the result of a measured run. `config` is the trial's: its batch sizes show which version of the engine wrote
// the file. Throws dsat::Error: not a JSON object, NaN, not a number, negative, no metric at all.
TrialReport read_metrics(std::string_view text, const std::string& file_name, const Json& config);

// Adds wall_throughput (samples per second, end to end) if wall_latency and the batch size are known.
void add_wall_throughput(const Json& config, Json& metrics);

// Reads the result of a model-information run: num_params (required), trainable_num_params, activation_mem_per_gpu and
// every other number in it. Throws as above.
TrialReport read_model_info(std::string_view text, const std::string& file_name);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_READ_METRICS_H_
