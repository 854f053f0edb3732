// Reads setups as points without axes, and fits the mixture to at most so many observations.
#include "cost/posterior/memory_posterior.h"

#include <fmt/format.h>

#include "dsat/cost/observation_window.h"

namespace dsat::cost {
namespace {

constexpr size_t kMostObservations = 48, kSetupsInWindow = 8;  // a fit takes the third power of their number

MemoryPrior prior_of(const Inputs& inputs, const std::vector<Observation>& observations) {
  double largest_peak = 0;
  for (const Observation& seen : observations) largest_peak = std::max(largest_peak, seen.peak_bytes.value_or(0));
  MemoryPrior prior = memory_prior(inputs, largest_peak);
  prior.states_bytes = model_state_bytes(inputs.size, observations.empty() ? Setup() : observations.front().setup);
  return prior;
}

// The observations that a fit takes, where there are many.
std::vector<Observation> enough_of(const std::vector<Observation>& observations) {
  if (observations.size() <= kMostObservations) return observations;
  ObservationWindow window(kSetupsInWindow);
  for (const Observation& seen : observations) window.add(seen);
  return window.observations();
}

}  // namespace

MemoryPosterior::MemoryPosterior(const Inputs& inputs, const std::vector<Observation>& observations)
    : size_(inputs.size), mixture_(axes_, prior_of(inputs, observations)) {
  std::vector<MemoryObservation> seen;
  for (const Observation& one : enough_of(observations)) {
    seen.push_back({point(one.setup), !one.out_of_memory, one.out_of_memory ? std::nullopt : one.peak_bytes,
                    one.peak_above_bytes, one.allocator_retries});
  }
  mixture_.fit(seen, true);
}

MemoryPoint MemoryPosterior::point(const Setup& setup) const {
  if (setup.micro_batch < 1) {
    throw Error(fmt::format("micro batch is {}; it must be at least 1", setup.micro_batch));
  }
  const auto [it, is_new] = arms_.try_emplace(setup);
  if (is_new) it->second = arm_of(size_, setup);
  return {&it->second, setup.micro_batch};
}

}  // namespace dsat::cost
