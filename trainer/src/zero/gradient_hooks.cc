// A tensor hook runs before a leaf's gradient is accumulated, a post hook of the leaf's accumulator node after it.
// Both are autograd's own extension points; LibTorch's C++ interface has no accumulator hooks above them.
#include "zero/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

namespace dsat::trainer {

using torch::autograd::variable_list;

GradientHooks::GradientHooks(const Layout& layout, const std::vector<std::vector<at::Tensor>>& leaves, Callback before,
                             Callback after)
    : before_(std::move(before)), after_(std::move(after)) {
  for (size_t group = 0; group < layout.groups().size(); ++group) {
    const std::vector<ParameterSlot>& slots = layout.groups()[group].parameters;
    for (size_t k = 0; k < slots.size(); ++k) {
      const at::Tensor& leaf = leaves[group][k];
      entries_.push_back({group, &slots[k], leaf, torch::autograd::impl::grad_accumulator(leaf)});
    }
  }
  for (size_t i = 0; i < entries_.size(); ++i) watch(i);
}

void GradientHooks::watch(size_t entry) {
  if (before_) {
    entries_[entry].leaf.register_hook([this, entry](const at::Tensor&) { before_(entries_[entry]); });
  }
  entries_[entry].accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [this, entry](const variable_list& outputs, const variable_list&) {
        ++entries_[entry].arrived;
        after_(entries_[entry]);
        return outputs;
      }));
}

void GradientHooks::begin_backward() {
  for (GradientEntry& entry : entries_) {
    entry.expected = std::max(entry.expected, entry.arrived);
    entry.arrived = 0;
  }
}

}  // namespace dsat::trainer
