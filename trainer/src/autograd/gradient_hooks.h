// Reports when autograd is about to accumulate the gradient of a parameter, and when it has.
//
// Only a backward pass of this engine is reported. A gradient that comes in a pass of another engine, with which this
// one shares a loss, is dropped, and what was accumulated before stays. One that comes in no engine's pass would be
// lost, or counted for the next step: it is refused.
// A parameter's gradient may arrive in several pieces within one backward: where a tied parameter is used in several
// parts that are recomputed apart. How many were seen in earlier backwards says when the last one is there.
// Ownership: borrows the layout, shares the leaves. The hooks stay on the leaves, and do nothing once this object is
// gone. Threading: the callbacks come on the thread that runs backward, which is the compute
// thread. Errors: what a callback throws comes out of backward; dsat::Error names a parameter outside of all passes.
#ifndef DSAT_TRAINER_AUTOGRAD_GRADIENT_HOOKS_H_
#define DSAT_TRAINER_AUTOGRAD_GRADIENT_HOOKS_H_

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
  at::Tensor kept{};                                   // what it has accumulated, while another engine's pass runs
  bool is_complete() const { return arrived >= expected; }
};

class GradientHooks {
 public:
  using Callback = std::function<void(GradientEntry&)>;

  // `leaves` by group, as the layout has them. `before` and `after` may be empty.
  GradientHooks(const Layout& layout, const std::vector<std::vector<at::Tensor>>& leaves, Callback before,
                Callback after);
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;
  ~GradientHooks() { end_backward(); }

  std::vector<GradientEntry>& entries() { return entries_; }  // in the order of the layout
  // Around a backward pass of this engine; counts the pieces anew. It may be ended twice.
  void begin_backward();
  void end_backward();

 private:
  void watch(size_t entry);
  void before_accumulation(GradientEntry& entry);
  void after_accumulation(GradientEntry& entry);

  std::vector<GradientEntry> entries_;
  Callback before_, after_;
  const std::shared_ptr<GradientHooks*> self_ = std::make_shared<GradientHooks*>(this);
  bool is_open_ = false;  // a backward pass of this engine runs
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_AUTOGRAD_GRADIENT_HOOKS_H_
