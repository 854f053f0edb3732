// The trials of a study that a fit of its memory needs. With them a fit costs the same after 1e5 trials as after 500.
//
// For each setup, whatever the micro batch, it keeps the measured peaks that span the line (the smallest and the three
// largest micro batches), the largest micro batch that fitted without a known peak, and the smallest that ran out of
// memory. It keeps the setup that was measured first, because the others are compared to it (dsat/cost/memory.h), and
// those that were seen last. Threading: one thread. Cost: add is logarithmic in the number of setups that are kept;
// memory is bounded.
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
