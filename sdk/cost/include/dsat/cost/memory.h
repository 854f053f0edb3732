// How much device memory a trial needs, learned from what is known so far.
//
// A pure function: the same profile inputs and observations give the same answer; nobody passes a model around, only
// observations. The host's printed estimate, the profiler and the searchers all call it.
//
//   peak(setup, m) = model states(setup) + buffers(setup) + fixed + activation x m        [bytes per device]
//
// `fixed` (framework overhead, fragmentation, workspace) and `activation` (bytes per sample of the micro batch) are
// fitted by weighted least squares; an out-of-memory trial is a one-sided observation: the peak was above the device
// memory. With too little known a prior takes over, and the interval says so.
#ifndef DSAT_COST_MEMORY_H_
#define DSAT_COST_MEMORY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "dsat/cost/model_states.h"
#include "dsat/cost/setup.h"

namespace dsat::cost {

// A value with its 90 % interval.
struct Interval {
  double value = 0, low = 0, high = 0;
};

// What the model-information trial told, and the device.
struct Inputs {
  ModelSize size;
  std::optional<double> activation_bytes_at_micro_batch_1;  // after minus before one forward, as DeepSpeed measures
  std::optional<double> device_memory_bytes;
};

// One ended trial: it fitted (with its peak, if the trial told it) or ran out of memory.
struct Observation {
  Setup setup;  // micro batch included
  bool out_of_memory = false;
  std::optional<double> peak_bytes;
};

// The fit. Cheap to make (microseconds for tens of observations), cheap to copy.
struct MemoryFit {
  Inputs inputs;
  std::vector<Observation> observations;
  double fixed_bytes = 0;
  double activation_bytes_per_sample = 0;
  // Covariance of (fixed, activation) and the residual's variance, bytes^2.
  double var_fixed = 0, var_activation = 0, cov = 0, var_residual = 0;
};
MemoryFit fit_memory(const Inputs& inputs, const std::vector<Observation>& observations);

Interval fixed_bytes(const MemoryFit& fit);
Interval activation_bytes_per_sample(const MemoryFit& fit);

// Peak bytes per device of a trial with this setup.
Interval predict_peak(const MemoryFit& fit, const Setup& setup);

// 0 to 1; 1 when the device's memory is unknown and no larger trial ran out of memory. A trial at least as large (same
// setup, micro batch no smaller) that fitted, or at most as large that did not, decides it.
double probability_of_fitting(const MemoryFit& fit, const Setup& setup);

// The largest micro batch that fits, for this setup at any micro batch: value by the predicted peak, low and high by
// its interval; observations of the same setup bound all three. At least 0: 0 = not even one sample fits. Unknown
// device memory: bounds by observations only, value 0 and high infinity when there is none.
Interval max_micro_batch(const MemoryFit& fit, const Setup& setup);

// From and to the JSON of a profile (docs/profile.md) and of the observations in a study (docs/study.md).
Json to_json(const Interval& interval);
Inputs inputs_from_profile(const Json& profile);
std::vector<Observation> observations_from_json(const Json& observations, int64_t data_parallel_size);

}  // namespace dsat::cost

#endif  // DSAT_COST_MEMORY_H_
