// Recomputation of activations (DeepSpeed: activation checkpointing): what a part of a model computes is not kept for
// backward but computed once more there.
//
// Threading: on the thread that runs forward and backward. Ownership: the graph keeps the function and the inputs until
// backward has passed or the output is gone. Errors: a second backward through the same part throws.
// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
#ifndef DSAT_TRAINER_RECOMPUTE_H_
#define DSAT_TRAINER_RECOMPUTE_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace dsat::trainer {

// Gives function(inputs), of which only the inputs are kept. It must do the same each time it is called: the generator
// of random numbers is wound back for that (dropout draws the same mask). Gradients flow to the inputs and to
// parameters that the function uses.
at::Tensor recompute(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function,
                     const std::vector<at::Tensor>& inputs);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_RECOMPUTE_H_
