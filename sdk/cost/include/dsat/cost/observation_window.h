// Of a study's trials, those that a fit of its memory needs: so that a fit costs the same after 1e5 trials as after
// 500.
//
// Kept of each setup, micro batch apart: the measured peaks that span the line (the smallest and the three largest
// micro batches), the largest that fitted without telling a peak, and the smallest that ran out of memory. Of setups:
// the one measured first, to which the others are compared (dsat/cost/memory.h), and those that were seen last.
// Threading: one thread. Cost: add is logarithmic in the number of setups that are kept; memory is bounded.
#ifndef DSAT_COST_OBSERVATION_WINDOW_H_
#define DSAT_COST_OBSERVATION_WINDOW_H_

#include <cstddef>
#include <cstdint>
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
  // Setups in the order in which they were first seen, micro batches ascending: the same trials in the same order give
  // the same list.
  std::vector<Observation> observations() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dsat::cost

#endif  // DSAT_COST_OBSERVATION_WINDOW_H_
