// Reads the steps that DeepSpeed prints while it trains.
//
// The metric file holds the timers of the last step only. The log has a line with timers for each step before it and,
// depending on steps_per_print, a line with the throughput of each step. docs/real-deepspeed.md lists the versions.
// Threading: pure functions. Units: microseconds, samples per second, bytes. Errors: none; a line whose numbers make no
// sense is left out.
#ifndef DSAT_HOST_OUTPUTS_STEP_LOG_H_
#define DSAT_HOST_OUTPUTS_STEP_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outputs/read_metrics.h"

namespace dsat::host {

// One optimizer step as it was printed.
struct LoggedStep {
  // The sums over all micro steps; 0: the step has no line with timers.
  double forward_us = 0, backward_us = 0, step_us = 0;
  double samples_per_second = 0;  // 0: the step has no line with its throughput
  double printed_at_us = 0;       // the log's time on the step's last line; 0: no line has one
  bool updates_nothing = false;   // the gradients overflowed in fp16, so the optimizer did not run
  double timers_us() const { return forward_us + backward_us + step_us; }
};

struct StepLog {
  std::map<int, LoggedStep> steps;     // by step number, from 1
  std::optional<uint64_t> peak_bytes;  // the highest MaxMemAllocated of rank 0, rounded to 0.01 GiB
};

// `is_cut`: lines before the first of `lines` are missing, so the number of a step is known only if it is printed.
StepLog read_step_log(const std::vector<std::string>& lines, bool is_cut);

// A trial is measured between these steps: autotuning's start_profile_step and end_profile_step.
struct ProfileWindow {
  int start = 3, end = 5;
};

// Whether a step is in the window, is not cold, and does not run the flops profiler, which is slower.
bool is_fit_step(int number, ProfileWindow window);

inline constexpr size_t kFewestSteps = 3;  // a median of fewer steps is no better than the last step

// Replaces the file's step in `metrics` by the median step if at least three steps of the window are known, or if the
// file's step did not update the weights and another step did. Adds latency_spread (standard deviation / median) and
// latency_steps (number of steps). `metrics` are canonical; metrics that are not from DeepSpeed's engine (latency =
// accumulation x (forward + backward + step)) are not changed. If the script gave no wall_latency, it becomes latency +
// script_time_us. Returns a warning, or "".
std::string use_logged_steps(const StepLog& log, ProfileWindow window, const Json& config, Json& metrics);

// Returns the time of a step that the engine's timers do not count, such as the script's waiting for data. It is the
// mean over the window's steps, because a loader with several workers gives several batches at once and then none for a
// while. `last_step_us`: the engine's time for the last step, which only the metric file has. nullopt: too few steps
// are known.
std::optional<double> script_time_us(const StepLog& log, ProfileWindow window, double last_step_us);

// Returns the number that follows `name` in the line; 0: there is no number, or it can be no time and no rate.
double value_after(std::string_view line, std::string_view name);

// For an even number of values, the mean of the two in the middle. Needs one value.
double median_of(std::vector<double> values);

// The standard deviation of `values`, divided by `middle`. Needs two values.
double relative_deviation(const std::vector<double>& values, double middle);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_STEP_LOG_H_
