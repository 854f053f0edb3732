// Who holds the gradients: every rank all of them (stages 0 and 1), or each rank its shard, filled through a bucket
// while backward runs (stages 2 and 3).
//
// In all stages a parameter's gradient is accumulated into a view that is there before autograd writes: backward takes
// the same memory in every stage, and what a stage adds is known beforehand.
// Threading: one rank, one thread (autograd runs backward on the caller's); backward and after_micro_step are
// collective.
#ifndef DSAT_TRAINER_GRADIENTS_H_
#define DSAT_TRAINER_GRADIENTS_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "parameters.h"
#include "zero_context.h"

namespace dsat::trainer {

class Gradients {
 public:
  virtual ~Gradients() = default;

  virtual void begin_step() = 0;
  // After backward. `is_last`: of the optimizer step; the shard then holds the sum over ranks and micro steps.
  virtual void after_micro_step(bool is_last) = 0;
  virtual at::Tensor shard() const = 0;
  // After the update: the shard is zero again and what the step has taken is given back.
  virtual void end_step() = 0;
};

// `layer_done` is called in backward when the last gradient of a layer has arrived (stages 2 and 3).
std::unique_ptr<Gradients> make_gradients(const ZeroContext& context, Parameters& parameters,
                                          std::function<void(size_t layer)> layer_done);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_GRADIENTS_H_
