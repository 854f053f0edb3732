// How much device memory a trial needs, learned from the trials so far.
//
// The same profile and observations always give the same answer. The printed estimate, the profiler and the searchers
// share this model.
//
//   peak(setup, m) = model states(setup) + buffers(setup) + fixed + activation x m + residual
//
// in bytes per device. `fixed` is the memory beyond the formula (framework, fragmentation, workspace), `activation` the
// bytes per sample of the micro batch. All terms are jointly normal, and so is the share of the device that trials get;
// the trials condition them. A trial that ran out of memory, or that fitted and reported no peak, is a one-sided
// observation. Hypotheses stand ready for where the formula is wrong, weighed by their evidence. What `guided` decides
// by is this model, with the axes of the space added. Method and figures: docs/cost-model.md.
//
// Threading: a fit and its copies are for one thread. Errors: dsat::Error for impossible numbers (NaN, negative, more
// trainable parameters than parameters).
#ifndef DSAT_COST_MEMORY_H_
#define DSAT_COST_MEMORY_H_

#include <cstdint>
#include <memory>
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
  std::optional<double> peak_bytes;          // of one that fitted
  std::optional<double> peak_above_bytes{};  // of one that ran out of memory: what it had allocated and what it wanted
  int64_t allocator_retries = 0;             // of one that fitted: its peak was close to what the device gives
};

class MemoryPosterior;

// A posterior; cheap to copy. A fit takes milliseconds: of many observations it keeps a window (observation_window.h).
struct MemoryFit {
  Inputs inputs;
  std::vector<Observation> observations;
  std::shared_ptr<const MemoryPosterior> posterior;
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
// fitted, else 0 if an equal or smaller one ran out of memory. Without such a trial the posterior decides. If the
// device's memory is unknown, the probability is 1 up to the largest predicted peak that fitted, 0 from the smallest
// that did not, and linear between; it is 1 if no trial ran out of memory.
double probability_of_fitting(const MemoryFit& fit, const Setup& setup);

// The largest micro batch that fits this setup, whatever its own micro batch: as likely as not, and with a probability
// of 95 % (low) and of 5 % (high). Observations of the same setup bound all three. 0: not even one sample fits.
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
