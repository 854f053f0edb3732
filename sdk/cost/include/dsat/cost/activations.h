// What activation checkpointing saves, predicted from one forward that keeps everything.
//
// Without checkpointing, activations are at their peak when backward begins. With it, forward keeps the inputs of
// segments only, and backward computes one segment after the other once more. At each moment the inputs of the segments
// up to this one are held, and all activations of this one.
// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), section 4.
//
// Threading: pure functions. Units: bytes of one micro batch on one device.
#ifndef DSAT_COST_ACTIVATIONS_H_
#define DSAT_COST_ACTIVATIONS_H_

#include <cstddef>
#include <vector>

namespace dsat::cost {

// One layer of a chain, in the order of forward.
struct LayerActivations {
  double kept_bytes = 0;               // that its forward left behind for backward, its output among them
  double output_bytes = 0;             // which is the next layer's input; its gradient takes as much
  double working_bytes = 0;            // beyond the kept ones and the gradients, taken while it computes in backward
  double largest_parameter_bytes = 0;  // whose gradient is there before it is accumulated
};

// The most that activations, a layer's working memory and its gradients take at one time. The output's gradient counts
// twice, since layers are often residual, and the input's once. `segment_ends`: the layers before which a segment ends,
// ascending. The first segment begins at layer 0, whose input is not counted. Layers after the last end, such as the
// loss, keep what they compute; without segments all layers do. Errors: dsat::Error on ends that do not ascend or lie
// beyond the layers.
double activation_peak_bytes(const std::vector<LayerActivations>& layers, const std::vector<size_t>& segment_ends = {});

}  // namespace dsat::cost

#endif  // DSAT_COST_ACTIVATIONS_H_
