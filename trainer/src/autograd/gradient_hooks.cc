// A tensor hook runs before a leaf's gradient is accumulated, a post hook of the leaf's accumulator node after it.
// Both are autograd's own extension points; LibTorch's C++ interface has no accumulator hooks above them.
#include "autograd/gradient_hooks.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

int passes_under_way = 0;  // of all engines in this process

}  // namespace

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
  const std::weak_ptr<GradientHooks*> self = self_;
  entries_[entry].leaf.register_hook([self, entry](const at::Tensor&) {
    if (const auto hooks = self.lock()) (*hooks)->before_accumulation((*hooks)->entries_[entry]);
  });
  entries_[entry].accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [self, entry](const variable_list& outputs, const variable_list&) {
        if (const auto hooks = self.lock()) (*hooks)->after_accumulation((*hooks)->entries_[entry]);
        return outputs;
      }));
}

void GradientHooks::before_accumulation(GradientEntry& entry) {
  if (is_open_) {
    if (before_) before_(entry);
    return;
  }
  if (passes_under_way == 0) {
    throw Error(
        fmt::format("parameter {} got a gradient outside of engine->backward(): call engine->backward(loss), not "
                    "loss.backward(); for several engines on one loss backward(loss, {{&one, &other}})",
                    entry.slot->spec.name));
  }
  entry.kept = entry.leaf.grad();
  entry.leaf.mutable_grad().reset();
}

void GradientHooks::after_accumulation(GradientEntry& entry) {
  if (!is_open_) {
    entry.leaf.mutable_grad() = std::exchange(entry.kept, {});
    return;
  }
  ++entry.arrived;
  if (after_) after_(entry);
}

void GradientHooks::begin_backward() {
  for (GradientEntry& entry : entries_) {
    entry.expected = std::max(entry.expected, entry.arrived);
    entry.arrived = 0;
  }
  if (!std::exchange(is_open_, true)) ++passes_under_way;
}

void GradientHooks::end_backward() {
  if (std::exchange(is_open_, false)) --passes_under_way;
}

}  // namespace dsat::trainer
