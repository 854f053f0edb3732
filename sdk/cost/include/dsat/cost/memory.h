// How much device memory a trial needs, learned from what is known so far.
//
// A pure function: the same profile inputs and observations give the same answer; nobody passes a model around, only
// observations. The host's printed estimate, the profiler and the searchers all call it.
//
//   peak(setup, m) = model states(setup) + buffers(setup) + fixed + activation x m
//                  + (scale - 1) x (buffers(setup) - buffers(reference))
//                  + extra x (optional buffers(setup) - optional buffers(reference)) + offset(stage)
//
// in bytes per device. The reference is the setup that was measured first: `fixed` is what that one takes beyond the
// formula, so a single measured stage is carried over to the others by the formula alone. `fixed` (framework overhead,
// fragmentation, workspace) and `activation` (bytes per sample of the micro batch) are fitted by weighted least
// squares, and so are small corrections whose priors are narrow: `scale` (1 when buffers are as documented), `extra` (0
// when an engine does without) and one offset a stage (0 when model states are as the formula has them). An
// out-of-memory trial is a one-sided observation: the peak was above `usable` x device memory, a share near 1 that is
// learnt too, since caches and other processes take theirs. With too little known a prior takes over, and the interval
// says so. Method and figures: docs/cost-model.md.
//
// Threading: pure functions. Errors: dsat::Error on numbers that cannot be (NaN, negative, more trained parameters than
// there are).
#ifndef DSAT_COST_MEMORY_H_
#define DSAT_COST_MEMORY_H_

#include <array>
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

// What the model-information trial reported, and the device.
struct Inputs {
  ModelSize size;
  std::optional<double> activation_bytes_at_micro_batch_1;  // after minus before one forward, as DeepSpeed measures
  std::optional<double> device_memory_bytes;
  // The script recomputes activations in backward: one forward then tells little of what a sample takes.
  bool recomputes_activations = false;
  // What an earlier fit (a profile) has found. It takes the place of the measured forward.
  std::optional<Interval> activation_bytes_per_sample;
  // The same for the part that does not depend on the micro batch: from a profile, or from fixed_bytes_by_forward.
  std::optional<Interval> fixed_bytes;
};

// One ended trial: it fitted (with its peak, if the trial reported it) or ran out of memory.
struct Observation {
  Setup setup;  // micro batch included
  bool out_of_memory = false;
  std::optional<double> peak_bytes;
};

// The fit: what is believed of the unknowns, as a normal distribution. Cheap to make (microseconds for tens of
// observations), cheap to copy.
struct MemoryFit {
  // fixed, activation, buffer scales, offsets of the stages 0 to 3, usable share; bytes but for scales and share.
  static constexpr int kTerms = 9;

  Inputs inputs;
  std::vector<Observation> observations;
  std::optional<Setup> reference;  // of the first measured peak; none: nothing was measured
  double fixed_bytes = 0;
  double activation_bytes_per_sample = 0;
  double buffer_scale = 1;
  double optional_buffer_scale = 0;
  std::array<double, 4> stage_offset_bytes{};
  double usable_share = 1;                           // of the device memory
  std::array<double, kTerms * kTerms> covariance{};  // of the above, in their order; row-major
  int64_t largest_measured_micro_batch = 0;          // predictions beyond it are less sure
  double relative_noise = 0;                         // standard deviation of a peak about the line, as a share of it
};
MemoryFit fit_memory(const Inputs& inputs, const std::vector<Observation>& observations);

// What a model-information trial's own peak says of `fixed` before anything is trained: what is left of it after model
// states, buffers and the activations that its one forward left behind. Backward may add the gradient of one parameter
// before it is accumulated, at most a layer's; the interval has room for it.
Interval fixed_bytes_by_forward(const ModelSize& size, const Setup& setup, double peak_bytes, double activation_bytes);

Interval fixed_bytes(const MemoryFit& fit);
Interval activation_bytes_per_sample(const MemoryFit& fit);

// Peak bytes per device of a trial with this setup.
Interval predict_peak(const MemoryFit& fit, const Setup& setup);

// 1 if a trial at least this large fitted; else 0 if one no larger ran out of memory. Only trials of the same setup are
// compared, by their micro batch. Without such a trial it lies between 0 and 1, by the predicted peak. When the
// device's memory is unknown, it is 1 up to the largest predicted peak that fitted, 0 from the smallest that did not,
// and a straight line between; it is 1 when no trial ran out of memory.
double probability_of_fitting(const MemoryFit& fit, const Setup& setup);

// The largest micro batch that fits this setup; its own micro batch does not count. The predicted peak gives the value,
// its interval gives low and high, and observations of the same setup bound all three. 0: not even one sample fits.
// kMicroBatchLimit: a sample costs nothing. If the device's memory is unknown, only observations count: the value is
// the largest micro batch that fitted, or 0, and high is infinity if nothing ran out of memory.
inline constexpr int64_t kMicroBatchLimit = 1'000'000'000;
Interval max_micro_batch(const MemoryFit& fit, const Setup& setup);

// The micro batch at which one more measured trial of this setup teaches most about the line; `trials_left` counts
// this one, too. The first of several is where the line begins, the next halfway to the ceiling, a third close below
// it. None is larger than what surely fits, even if all that the last trial took beyond states and buffers grows with
// the micro batch. A trial that stays alone goes halfway to where the forward pass lets it surely fit, and not far.
int64_t next_to_measure(const MemoryFit& fit, const Setup& setup, int64_t trials_left);

// From and to the JSON of a profile (docs/profile.md) and of the observations in a study (docs/study.md). An infinite
// bound is null in JSON. Only observations that say something about memory are kept: completed training trials and
// those that ran out of memory.
Json to_json(const Interval& interval);
Inputs inputs_from_profile(const Json& profile);
std::vector<Observation> observations_from_json(const Json& observations, int64_t data_parallel_size,
                                                Engine engine = Engine::deepspeed);

}  // namespace dsat::cost

#endif  // DSAT_COST_MEMORY_H_
