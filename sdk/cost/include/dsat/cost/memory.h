// How much device memory a trial needs, learned from the trials so far.
//
// The same profile and observations always give the same answer. The printed estimate, the profiler and the searchers
// share this model.
//
//   peak(setup, m) = model states(setup) + buffers(setup) + fixed + activation x m
//                  + (scale - 1) x (buffers(setup) - buffers(reference))
//                  + extra x (optional buffers(setup) - optional buffers(reference)) + offset(stage)
//
// in bytes per device. The reference is the setup that was measured first. `fixed` is its memory beyond the formula
// (framework, fragmentation, workspace), `activation` the bytes per sample of the micro batch; both are fitted by
// weighted least squares. The formula alone carries one measured stage over to the others. Small corrections with
// narrow priors are fitted too: `scale` (1: buffers are as documented), `extra` (0: the engine does without optional
// buffers) and one offset a stage (0: model states follow the formula). An out-of-memory trial is a one-sided
// observation: its peak was above `usable` x device memory. `usable` is a share near 1 and is learned too, since caches
// and other processes take memory. With few observations the priors decide, and intervals are wide. Method and figures:
// docs/cost-model.md.
//
// Threading: pure functions. Errors: dsat::Error for impossible numbers (NaN, negative, more trainable parameters than
// parameters).
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

// The report of the model-information trial, and the device.
struct Inputs {
  ModelSize size;
  std::optional<double> activation_bytes_at_micro_batch_1;  // memory after one forward minus before, as in DeepSpeed
  std::optional<double> device_memory_bytes;
  // The script recomputes activations in backward, so one forward shows little of a sample's memory.
  bool recomputes_activations = false;
  // An earlier fit (a profile). It replaces the measured forward.
  std::optional<Interval> activation_bytes_per_sample;
  // The same for the memory that does not depend on the micro batch; from a profile or fixed_bytes_by_forward.
  std::optional<Interval> fixed_bytes;
};

// A trial that fitted (with its peak, if reported) or ran out of memory.
struct Observation {
  Setup setup;  // micro batch included
  bool out_of_memory = false;
  std::optional<double> peak_bytes;
};

// The fit: a normal distribution over the unknowns. Cheap to make (microseconds for tens of observations) and to copy.
struct MemoryFit {
  // fixed, activation, the two buffer scales, the offsets of stages 0 to 3, the usable share. Bytes, but for the scales
  // and the share.
  static constexpr int kTerms = 9;

  Inputs inputs;
  std::vector<Observation> observations;
  std::optional<Setup> reference;  // of the first measured peak; none: no peak was measured
  double fixed_bytes = 0;
  double activation_bytes_per_sample = 0;
  double buffer_scale = 1;
  double optional_buffer_scale = 0;
  std::array<double, 4> stage_offset_bytes{};
  double usable_share = 1;                           // of the device memory
  std::array<double, kTerms * kTerms> covariance{};  // of the terms above, in their order; row-major
  int64_t largest_measured_micro_batch = 0;          // predictions beyond it are less certain
  double relative_noise = 0;                         // standard deviation of a peak about the line, as a share of it
};
MemoryFit fit_memory(const Inputs& inputs, const std::vector<Observation>& observations);

// `fixed` by the peak of a model-information trial, before any training: the peak minus model states, buffers and the
// activations of its one forward. Backward may add the gradient of one parameter, at most a layer's; the interval
// covers that.
Interval fixed_bytes_by_forward(const ModelSize& size, const Setup& setup, double peak_bytes, double activation_bytes);

Interval fixed_bytes(const MemoryFit& fit);
Interval activation_bytes_per_sample(const MemoryFit& fit);

// Peak bytes per device of a trial with this setup.
Interval predict_peak(const MemoryFit& fit, const Setup& setup);

// The probability that this setup fits. Trials of the same setup decide first: 1 if an equal or larger micro batch
// fitted, else 0 if an equal or smaller one ran out of memory. Without such a trial the predicted peak decides. If the
// device's memory is unknown, the probability is 1 up to the largest predicted peak that fitted, 0 from the smallest
// that did not, and linear between; it is 1 if no trial ran out of memory.
double probability_of_fitting(const MemoryFit& fit, const Setup& setup);

// The largest micro batch that fits this setup, whatever its own micro batch. The predicted peak gives the value, the
// peak's interval gives low and high, and observations of the same setup bound all three. 0: not even one sample fits.
// kMicroBatchLimit: a sample costs nothing. If the device's memory is unknown, only observations count: the value is
// the largest micro batch that fitted, or 0, and high is infinity if no trial ran out of memory.
inline constexpr int64_t kMicroBatchLimit = 1'000'000'000;
Interval micro_batch_ceiling(const MemoryFit& fit, const Setup& setup);

// The micro batch of this setup whose trial improves the line most. `trials_left` includes this trial. The first trial
// is at the start of the line, the second halfway to the ceiling, the third close below it. No micro batch is larger
// than one that surely fits, even if all memory of the last trial beyond states and buffers grows with the micro batch.
// A single trial goes halfway to where, by the forward pass, it surely fits, but not far.
int64_t next_to_measure(const MemoryFit& fit, const Setup& setup, int64_t trials_left);

// From and to the JSON of a profile (docs/profile.md) and of the observations in a study (docs/study.md). An infinite
// bound is null in JSON. Only observations about memory are kept: completed training trials and trials out of memory.
Json to_json(const Interval& interval);
Inputs inputs_from_profile(const Json& profile);
std::vector<Observation> observations_from_json(const Json& observations, int64_t data_parallel_size,
                                                Engine engine = Engine::deepspeed);

}  // namespace dsat::cost

#endif  // DSAT_COST_MEMORY_H_
