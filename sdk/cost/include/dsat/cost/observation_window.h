// The trials that a memory fit of a study needs, so that a fit costs the same after 1e5 trials as after 500.
//
// The window keeps for each setup, whatever its micro batch, the measured peaks that span the line (the smallest and
// the three largest micro batches), the largest micro batch that fitted without a known peak, and the smallest that ran
// out of memory. It keeps the setup that was measured first, because the others are compared to it
// (dsat/cost/memory.h), and the latest ones. Threading: one thread. Cost: add is logarithmic in the number of kept
// setups; memory is bounded.
#ifndef DSAT_COST_OBSERVATION_WINDOW_H_
#define DSAT_COST_OBSERVATION_WINDOW_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "dsat/cost/memory.h"

namespace dsat::cost {

class ObservationWindow {
 public:
  // At most six observations a setup.
  explicit ObservationWindow(size_t most_setups = 64);
  ~ObservationWindow();
  ObservationWindow(ObservationWindow&&) noexcept;
  ObservationWindow& operator=(ObservationWindow&&) noexcept;

  void add(const Observation& observation);
  // Setups in the order of their first trial, micro batches ascending. The same trials give the same list.
  std::vector<Observation> observations() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dsat::cost

#endif  // DSAT_COST_OBSERVATION_WINDOW_H_
