// Computes a trial's answer by the step model, with noise. A trial takes its start-up time plus the time of its steps.
#include "sim/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dsat/base/units.h"
#include "dsat/config/batch.h"
#include "dsat/random.h"
#include "sim/step.h"

namespace dsat::host::sim {
namespace {

// Box-Muller transform of two uniform draws.
double normal(Random& random) {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(kTwoPi * random.uniform());
}

// Returns a phase's time in this trial, relative to its usual time.
double noise_factor(Random& random, double deviation) { return std::max(0.5, 1 + deviation * normal(random)); }

// A trial that completes runs all steps. A trial that runs out of memory does so in the first.
double seconds_of(const Scenario& scenario, double step_seconds, double steps) {
  return scenario.startup_seconds + steps * step_seconds;
}

Json metrics_of(const StepTime& t, double train_batch) {
  return {{"forward", t.forward * 1e6},
          {"backward", t.backward * 1e6},
          {"step", t.step * 1e6},
          {"latency", t.total * 1e6},
          {"throughput", train_batch / t.total},
          {"FLOPS_per_gpu", t.flops_per_device / t.total}};
}

StepTime with_noise(StepTime t, const Scenario& scenario, uint64_t seed) {
  const Noise& noise = scenario.noise;
  Random random(seed);
  const bool disturbed = random.uniform() < noise.straggler_probability;
  const double slowed = disturbed ? 1 + noise.straggler_slowdown : 1;
  const double slots = (t.total - t.step) / (t.forward + t.backward);
  t.forward *= noise_factor(random, noise.relative) * slowed;
  t.backward *= noise_factor(random, noise.relative) * slowed;
  t.step *= noise_factor(random, noise.relative) * slowed;
  t.total = slots * (t.forward + t.backward) + t.step;
  return t;
}

}  // namespace

SimulatedRun ClusterSurface::out_of_memory(double wanted_bytes) const {
  SimulatedRun run;
  run.outcome = Outcome::out_of_memory;
  run.reason = fmt::format("out of memory: {} needed, {} available", format_size(wanted_bytes),
                           format_size(scenario_.cluster.device_memory));
  run.device_memory_bytes = static_cast<uint64_t>(scenario_.cluster.device_memory);
  return run;
}

SimulatedRun ClusterSurface::run(const SimulatedTrial& trial) const {
  const Run run = run_from_config(scenario_, trial.config, trial.slots);
  const StepTime usual = step_time(scenario_, run);
  const Memory memory = trial.model_info ? forward_memory(scenario_, run) : step_memory(scenario_, run);
  SimulatedRun answer;
  if (memory.reserved > scenario_.cluster.device_memory) {
    answer = out_of_memory(memory.reserved);
    answer.seconds = seconds_of(scenario_, usual.forward + usual.backward, 1);
    return answer;
  }
  answer.device_memory_bytes = static_cast<uint64_t>(scenario_.cluster.device_memory);
  if (trial.model_info) {
    answer.metrics = {{"num_params", std::round(scenario_.model.num_params)},
                      {"trainable_num_params", std::round(scenario_.model.num_params)},
                      {"activation_mem_per_gpu", memory.activations}};
    answer.seconds = seconds_of(scenario_, usual.forward, 1);
    return answer;
  }
  const StepTime measured = with_noise(usual, scenario_, trial.seed);
  answer.peak_bytes = static_cast<uint64_t>(memory.allocated);
  answer.metrics = metrics_of(measured, trial.config.at(config::kTrainBatchKey).get<double>());
  // A trial of --verify has more steps than the scenario gives.
  const double last = trial.config.value("/autotuning/end_profile_step"_json_pointer, 0.0);
  const double steps = std::max(scenario_.steps, last + 1);
  answer.seconds = seconds_of(scenario_, measured.total, steps);
  answer.curve = curve_of(scenario_.training, trial.config, static_cast<int64_t>(steps), trial.seed);
  return answer;
}

}  // namespace dsat::host::sim
