// How a chain of layers is cut for the recomputation of activations (DeepSpeed: activation checkpointing): forward
// keeps the input of each segment only, backward recomputes one segment at a time.
//
// Units: layers, counted from 0. Threading: a pure function. Errors: none.
#ifndef DSAT_TRAINER_LAYOUT_RECOMPUTE_SEGMENTS_H_
#define DSAT_TRAINER_LAYOUT_RECOMPUTE_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dsat::trainer {

// Layers from `begin` up to, not including, `end`.
struct Segment {
  size_t begin = 0, end = 0;
};
using Segments = std::vector<Segment>;

// `count` segments whose lengths differ by one at most; at most one a layer. 0: about as many as each has layers, which
// keeps the fewest activations at a time (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
Segments segments_of(size_t layers, int64_t count);

// As few segments as have at most `interval` layers each; at least 1.
Segments segments_of_interval(size_t layers, int64_t interval);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_LAYOUT_RECOMPUTE_SEGMENTS_H_
