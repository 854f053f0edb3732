// The steps that DeepSpeed prints while it trains, and what they say beside its metric file.
//
// The metric file holds the timers of one step only, the last one. The log has a line with timers for each step before
// it, and where steps_per_print allows it a line with the throughput of each; docs/real-deepspeed.md says which version
// prints what. Threading: pure functions. Units: microseconds, samples a second, bytes. Errors: none; a line whose
// numbers make no sense is left out.
#ifndef DSAT_HOST_OUTPUTS_STEP_LOG_H_
#define DSAT_HOST_OUTPUTS_STEP_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "outputs/read_metrics.h"

namespace dsat::host {

// One optimizer step as it was printed.
struct LoggedStep {
  // The sum over all micro steps; 0 where the step has no line with timers.
  double forward_us = 0, backward_us = 0, step_us = 0;
  double samples_per_second = 0;  // 0: it has no line with its throughput
  double printed_at_us = 0;       // the time of its last line, by the log; 0: none has one
  bool updates_nothing = false;   // its gradients overflowed in fp16, so it has no optimizer step
  double timers_us() const { return forward_us + backward_us + step_us; }
};

struct StepLog {
  std::map<int, LoggedStep> steps;     // by their number, from 1
  std::optional<uint64_t> peak_bytes;  // the highest MaxMemAllocated, of rank 0, rounded to 0.01 GiB
};

// `is_cut`: lines are missing before the first of `lines`, so that steps are known by printed numbers only.
StepLog read_step_log(const std::vector<std::string>& lines, bool is_cut);

// The steps between which a trial is measured: autotuning's start_profile_step and end_profile_step.
struct ProfileWindow {
  int start = 3, end = 5;
};

// One of the window, not cold, and not the one that carries the flops profiler, which is slower.
bool is_fit_step(int number, ProfileWindow window);

inline constexpr size_t kFewestSteps = 3;  // of which a median says more than the last step alone

// Replaces the file's step by the one in the middle where at least three steps of the window are known, or by any that
// updated the weights where the file's did not, and adds
// latency_spread (the steps' standard deviation over their median) and latency_steps (how many). `metrics` are
// canonical; those that are no work of DeepSpeed's engine (latency = accumulation x (forward + backward + step)) stay
// as they are. Without a wall_latency of the script's own it follows from the times of the lines: latency and what the
// script takes between the engine's steps (script_time_us). Returns a warning, or "".
std::string use_logged_steps(const StepLog& log, ProfileWindow window, const Json& config, Json& metrics);

// What a step of the window takes beside the engine's timers: the script, waiting for its data for instance. It is the
// mean over the steps, since a loader with several workers gives several batches at once and then none for a while.
// `last_step_us`: the engine's time of the last step, whose timers stand in the metric file alone. nullopt: too few
// steps are known.
std::optional<double> script_time_us(const StepLog& log, ProfileWindow window, double last_step_us);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_STEP_LOG_H_
