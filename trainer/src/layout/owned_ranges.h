// Which elements of which parameters a rank's shard holds: what a partition looks like from the parameters' side.
//
// Units: elements. Threading: a pure function. Errors: none.
#ifndef DSAT_TRAINER_LAYOUT_OWNED_RANGES_H_
#define DSAT_TRAINER_LAYOUT_OWNED_RANGES_H_

#include <vector>

#include "layout/layout.h"

namespace dsat::trainer {

// `size` elements of a parameter from its element `begin` on, at `shard_begin` in the shard. Padding is in none.
struct OwnedRange {
  int64_t parameter = 0;  // ParameterSlot::id
  int64_t begin = 0;
  int64_t size = 0;
  int64_t shard_begin = 0;
};

// In the order of the shard within each parameter; parameters in the order of the layout.
std::vector<OwnedRange> owned_ranges(const Layout& layout, const Partition& partition, int rank);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_LAYOUT_OWNED_RANGES_H_
