// The activation memory under activation checkpointing, predicted from one forward pass that keeps everything.
//
// Without checkpointing, activations peak when backward begins. With checkpointing, forward keeps the inputs of
// segments only, and backward recomputes one segment after the other. At that moment the memory holds the inputs of the
// segments up to this one, and all activations of this one.
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
  double kept_bytes = 0;               // kept by forward for backward, the output included
  double output_bytes = 0;             // the next layer's input; its gradient has the same size
  double working_bytes = 0;            // further memory of the layer's own backward
  double largest_parameter_bytes = 0;  // this parameter's gradient exists before it is accumulated
};

// The peak of activations, a layer's working memory and its gradients. The output's gradient counts twice, since layers
// are often residual, and the input's once. `segment_ends`: the layers before which a segment ends, ascending. The
// first segment begins at layer 0, whose input does not count. Layers after the last end, such as the loss, keep
// everything; without segments all layers do. Errors: dsat::Error for ends that do not ascend or lie beyond the layers.
double activation_peak_bytes(const std::vector<LayerActivations>& layers, const std::vector<size_t>& segment_ends = {});

}  // namespace dsat::cost

#endif  // DSAT_COST_ACTIVATIONS_H_
