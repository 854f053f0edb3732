// Initial parameter values, for the part of the flat array that a rank owns.
#ifndef DSAT_TRAINER_ZERO_INITIAL_VALUES_H_
#define DSAT_TRAINER_ZERO_INITIAL_VALUES_H_

#include <cstdint>

#include "base/bfloat16.h"
#include "base/random.h"
#include "layout/layout.h"

namespace dsat::trainer {

// `shard` has partition.shard_size() elements and is zero; padding stays zero. The same values for every partition.
template <typename T>
void fill_initial(const Layout& layout, const Partition& partition, int rank, uint64_t seed, T* shard) {
  for (const LayerSlot& layer : layout.layers()) {
    for (const ParameterSlot& slot : layer.parameters) {
      const RandomStream stream(seed, static_cast<uint64_t>(slot.id));
      for (const Piece& piece : partition.pieces(slot.begin, slot.size)) {
        if (piece.owner != rank) continue;
        const auto first = static_cast<uint64_t>(piece.begin - slot.begin);
        for (int64_t i = 0; i < piece.size; ++i) {
          const float noise =
              slot.spec.bound == 0 ? 0 : slot.spec.bound * stream.uniform(first + static_cast<uint64_t>(i));
          assign(shard[piece.shard_begin + i], slot.spec.offset + noise);
        }
      }
    }
  }
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_INITIAL_VALUES_H_
