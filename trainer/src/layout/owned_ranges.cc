// Asks the partition for the pieces of each parameter and keeps those of the rank.
// Padding belongs to no parameter, so it is in no range.
#include "layout/owned_ranges.h"

namespace dsat::trainer {

std::vector<OwnedRange> owned_ranges(const Layout& layout, const Partition& partition, int rank) {
  std::vector<OwnedRange> ranges;
  for (const GroupSlot& group : layout.groups()) {
    for (const ParameterSlot& slot : group.parameters) {
      for (const Piece& piece : partition.pieces(slot.begin, slot.size)) {
        if (piece.owner != rank) continue;
        ranges.push_back({slot.id, piece.begin - slot.begin, piece.size, piece.shard_begin});
      }
    }
  }
  return ranges;
}

}  // namespace dsat::trainer
