// Reports when autograd is about to accumulate the gradient of a parameter, and when it has.
//
// A parameter's gradient may arrive in several pieces within one backward: where a tied parameter is used in several
// parts that are recomputed apart. How many were seen in earlier backwards says when the last one is there.
// Ownership: borrows the layout, shares the leaves. The hooks stay on the leaves and call this object: it must live as
// long as backward passes run. Threading: the callbacks come on the thread that runs backward, which is the compute
// thread. Errors: what a callback throws comes out of backward.
#ifndef DSAT_TRAINER_ZERO_GRADIENT_HOOKS_H_
#define DSAT_TRAINER_ZERO_GRADIENT_HOOKS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "layout/layout.h"

namespace torch::autograd {
struct Node;
}

namespace dsat::trainer {

// A parameter and what has arrived of its gradient.
struct GradientEntry {
  size_t group;
  const ParameterSlot* slot;
  at::Tensor leaf;
  std::shared_ptr<torch::autograd::Node> accumulator;  // autograd itself holds it only weakly
  int arrived = 0;                                     // in this backward
  int expected = 1;                                    // the most seen in any
  bool is_complete() const { return arrived >= expected; }
};

class GradientHooks {
 public:
  using Callback = std::function<void(GradientEntry&)>;

  // `leaves` by group, as the layout has them. `before` may be empty.
  GradientHooks(const Layout& layout, const std::vector<std::vector<at::Tensor>>& leaves, Callback before,
                Callback after);
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  std::vector<GradientEntry>& entries() { return entries_; }  // in the order of the layout
  // Starts to count the pieces of a new backward pass.
  void begin_backward();

 private:
  void watch(size_t entry);

  std::vector<GradientEntry> entries_;
  Callback before_, after_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_GRADIENT_HOOKS_H_
