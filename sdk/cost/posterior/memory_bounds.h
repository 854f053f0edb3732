// What the ends of trials imply for other points, whatever a model believes.
//
// Purpose: memory is monotonic. A trial that completed shows that every point that needs no more fits too, and one that
//   ran out of memory shows that every point that needs no less does not. A point needs no more than another one where
//   its micro batch is no larger, its axes that only take memory (buckets, overlap, offload) take no more, all other
//   axes but those without effect on memory have the same value, and the ZeRO stage is the same. A higher stage counts
//   too where what it divides outweighs all of its buffers. Where two trials contradict each other, the one that
//   completed stands.
// Units: samples (micro batches). Threading: one thread. Errors: none. Ownership: refers to the axes and to the arms of
//   the trials, which must live longer.
#ifndef DSAT_COST_POSTERIOR_MEMORY_BOUNDS_H_
#define DSAT_COST_POSTERIOR_MEMORY_BOUNDS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "cost/posterior/memory_keys.h"
#include "cost/posterior/places.h"

namespace dsat::cost {

class MemoryBounds {
 public:
  explicit MemoryBounds(const std::vector<ModelAxis>& axes);

  // What a bound implies: more the farther it reaches, as long as no trial contradicts it.
  enum class Reach { arm, stage, all };
  void clear(Reach reach = Reach::all);
  void add(const MemoryPoint& point, bool fits);

  // The largest micro batch of an arm that is known to fit (0: none), and the smallest that is known not to.
  struct Range {
    int64_t fits = 0;
    int64_t too_big = std::numeric_limits<int64_t>::max();
  };
  Range of(const MemoryArm& arm) const;
  // Does this arm, at any micro batch, need no more memory than the other one at the same?
  bool needs_no_more(const MemoryArm& arm, const MemoryArm& than) const;
  // Do both have the same values of all keys outside of zero_optimization of whose effect on memory nothing is known?
  // These may change activations many times over, which no residual expects.
  bool share_unknown_values(const MemoryArm& a, const MemoryArm& b) const;

 private:
  static MemoryEffect effect_of(const ModelAxis& axis);
  bool implies(const MemoryPoint& a, const MemoryPoint& b, bool fits) const;

  Reach reach_ = Reach::all;
  std::vector<MemoryEffect> effects_;         // of each axis
  std::vector<size_t> unknown_;               // axes outside of zero_optimization with an unknown effect
  std::vector<MemoryPoint> fitted_, failed_;  // less those that follow from another one
};

}  // namespace dsat::cost

#endif  // DSAT_COST_POSTERIOR_MEMORY_BOUNDS_H_
