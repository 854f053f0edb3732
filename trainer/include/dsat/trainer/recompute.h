// Recomputation of activations (DeepSpeed: activation checkpointing): the activations of a part of a model are not kept
// for backward, which computes them again.
//
// Threading: the thread that runs forward and backward. Ownership: the graph keeps the function and the inputs until
// backward has used them or the output is destroyed. Errors: a second backward through the same part throws.
// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
#ifndef DSAT_TRAINER_RECOMPUTE_H_
#define DSAT_TRAINER_RECOMPUTE_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace dsat::trainer {

// Returns function(inputs) and keeps only the inputs. The function must compute the same in each call; the random
// number generator is reset for the second call, so that dropout draws the same mask. Gradients flow to the inputs and
// to parameters that the function uses.
at::Tensor recompute(const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function,
                     const std::vector<at::Tensor>& inputs);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_RECOMPUTE_H_
