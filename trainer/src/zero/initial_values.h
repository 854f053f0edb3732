// Initial parameter values, for the part of the flat array that a rank owns.
//
// A value depends on the seed, the parameter's number in the model and the element's position in the parameter, and on
// nothing else: ranks fill their shards without communication, and the model is the same at every stage and world size.
// The distribution of a parameter (offset plus uniform noise within a bound) is in its ParameterSpec. Threading: none
// of its own. Errors: none.
#ifndef DSAT_TRAINER_ZERO_INITIAL_VALUES_H_
#define DSAT_TRAINER_ZERO_INITIAL_VALUES_H_

#include <cstdint>

#include "base/random.h"
#include "layout/layout.h"

namespace dsat::trainer {

// `shard`: partition.shard_size() elements, all zero; padding stays zero.
inline void fill_initial(const Layout& layout, const Partition& partition, int rank, uint64_t seed, float* shard) {
  for (const GroupSlot& layer : layout.groups()) {
    for (const ParameterSlot& slot : layer.parameters) {
      const RandomStream stream(seed, slot.spec.stream);
      for (const Piece& piece : partition.pieces(slot.begin, slot.size)) {
        if (piece.owner != rank) continue;
        const auto first = static_cast<uint64_t>(piece.begin - slot.begin);
        for (int64_t i = 0; i < piece.size; ++i) {
          const float noise =
              slot.spec.bound == 0 ? 0 : slot.spec.bound * stream.uniform(first + static_cast<uint64_t>(i));
          shard[piece.shard_begin + i] = slot.spec.offset + noise;
        }
      }
    }
  }
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_INITIAL_VALUES_H_
