// What a trial wrote, made canonical. docs/trial.md has the rules.
//
// Threading: pure functions. Units: forward, backward, step, latency and wall_latency in microseconds, throughput in
// samples a second over all devices, FLOPS_per_gpu in FLOP/s.
#ifndef DSAT_HOST_OUTPUTS_READ_METRICS_H_
#define DSAT_HOST_OUTPUTS_READ_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/metric.h"

namespace dsat::host {

// In the warning that throughput, latency and the batch size do not agree. All trials of a script have it.
inline constexpr std::string_view kMeasuresElse = "the script measures something else";

// What a result file holds.
struct TrialReport {
  Json metrics;  // canonical metrics, or the model's figures
  std::optional<uint64_t> peak_bytes, device_memory_bytes;
  std::optional<int64_t> world_size;
  std::vector<std::string> left_out;  // metrics whose figure cannot be used: no machine reaches it, or nothing counted
  std::vector<std::string> warnings;
};

// Reads a measured run's result. `config` is the trial's: its batch sizes show which generation of the engine wrote the
// file. Throws dsat::Error: not a JSON object, NaN, not a number, negative, no metric at all.
TrialReport read_metrics(std::string_view text, const std::string& file_name, const Json& config);

// Adds wall_throughput (samples a second, end to end) where wall_latency and the batch are known.
void add_wall_throughput(const Json& config, Json& metrics);

// Reads a model-information run's result: num_params (needed), trainable_num_params, activation_mem_per_gpu and every
// other number in it. Throws as above.
TrialReport read_model_info(std::string_view text, const std::string& file_name);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_READ_METRICS_H_
