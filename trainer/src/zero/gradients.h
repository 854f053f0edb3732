// Who holds the gradients: every rank all of them (stages 0 and 1, replicated_gradients.h), or each rank its shard,
// filled through buckets while backward runs (stages 2 and 3, partitioned_gradients.h).
//
// The flat array is cut into buckets from its end to its front, as backward delivers it. They are reduced in that order
// on every rank, each as soon as all its gradients are there, and the rest when backward ends: a parameter that got no
// gradient counts as zero, so ranks may use different parameters. In all stages a parameter's gradient is accumulated
// into a view that is there before autograd writes: backward takes the same memory in every stage.
// ZeRO's stage 2 keeps a rank only the sum of its own shard: P/N elements instead of P.
// Ownership: gradients are views of memory that is held here. Threading: the compute thread, on which backward runs
// (backward_thread.h); begin_backward to end_backward is collective. Errors: PeerLost; dsat::Error.
#ifndef DSAT_TRAINER_ZERO_GRADIENTS_H_
#define DSAT_TRAINER_ZERO_GRADIENTS_H_

#include <ATen/core/Tensor.h>

namespace dsat::trainer {

class Gradients {
 public:
  virtual ~Gradients() = default;

  // Takes the memory that only a step needs: buckets and staging buffers.
  virtual void begin_step() = 0;
  // `is_last`: of the optimizer step.
  virtual void begin_backward(bool is_last) = 0;
  // After the last one the shard holds the sum over ranks and micro steps.
  virtual void end_backward() = 0;
  // Instead of end_backward(), after a pass that has failed.
  virtual void abandon_backward() = 0;
  // This rank's elements, flat, of the parameters' type. Meaningful after the last backward of an optimizer step.
  virtual at::Tensor shard() const = 0;
  // After the update: the shard is zero again and what the step has taken is given back.
  virtual void end_step() = 0;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_GRADIENTS_H_
