// The posterior of a study's memory, by setups: what dsat/cost/memory.h answers from.
//
// Purpose: the mixture (memory_mixture.h) knows points; this gives each setup its point and keeps it. There are no axes
//   here: setups differ in what the formula reads.
// Threading: one thread. Units: bytes. Errors: dsat::Error for a micro batch below 1.
#ifndef DSAT_COST_POSTERIOR_MEMORY_POSTERIOR_H_
#define DSAT_COST_POSTERIOR_MEMORY_POSTERIOR_H_

#include <map>
#include <vector>

#include "cost/posterior/memory_mixture.h"
#include "cost/posterior/setups.h"

namespace dsat::cost {

class MemoryPosterior {
 public:
  MemoryPosterior(const Inputs& inputs, const std::vector<Observation>& observations);
  MemoryPosterior(const MemoryPosterior&) = delete;  // the points refer to it
  MemoryPosterior& operator=(const MemoryPosterior&) = delete;

  const MemoryMixture& mixture() const { return mixture_; }
  MemoryPoint point(const Setup& setup) const;

 private:
  ModelSize size_;
  std::vector<ModelAxis> axes_;                             // none
  mutable std::map<Setup, MemoryArm, OrderOfSetups> arms_;  // of all setups that were seen or asked about
  MemoryMixture mixture_;
};

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_MEMORY_POSTERIOR_H_
