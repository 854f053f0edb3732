#include "zero/model_parts.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <iterator>
#include <unordered_set>
#include <utility>

#include "dsat/error.h"
#include "dsat/trainer/engine.h"

namespace dsat::trainer {
namespace {

// Collects a module's tensors, each once: a tied parameter belongs to the first submodule that has it.
class Collector {
 public:
  explicit Collector(ModelParts& parts) : parts_(parts) {}

  void begin_group() { group_.clear(); }
  void parameter(const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined() || !seen_.insert(tensor.unsafeGetTensorImpl()).second) return;
    if (!tensor.requires_grad()) {
      parts_.others.push_back({name, tensor});
      return;
    }
    if (!tensor.is_floating_point() || tensor.layout() != at::kStrided) {
      throw Error("parameter " + name + " is no dense floating-point tensor");
    }
    if (!tensor.is_leaf()) throw Error("parameter " + name + " is computed from others; register those instead");
    group_.push_back({{name, tensor.sizes().vec()}, tensor, /*has_values=*/true});
  }
  void buffer(const std::string& name, const at::Tensor& tensor) {
    if (tensor.defined() && seen_.insert(tensor.unsafeGetTensorImpl()).second) parts_.others.push_back({name, tensor});
  }
  void end_group() {
    if (!group_.empty()) parts_.groups.push_back(std::move(group_));
  }

 private:
  ModelParts& parts_;
  std::vector<ModelParameter> group_;
  std::unordered_set<const c10::TensorImpl*> seen_;
};

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

std::shared_ptr<ModelParts> checked(std::shared_ptr<ModelParts> parts) {
  if (parts->groups.empty()) throw Error("the model has no parameter that requires a gradient: nothing to train");
  return parts;
}

}  // namespace

std::shared_ptr<ModelParts> parts_of(torch::nn::Module& module) {
  auto parts = std::make_shared<ModelParts>();
  Collector collector(*parts);
  const auto visit = [&](const std::string& path, const torch::nn::Module& part) {
    collector.begin_group();
    for (const auto& item : part.named_parameters(/*recurse=*/false)) {
      collector.parameter(joined(path, item.key()), item.value());
    }
    for (const auto& item : part.named_buffers(/*recurse=*/false))
      collector.buffer(joined(path, item.key()), item.value());
    collector.end_group();
  };
  visit("", module);
  for (const auto& item : module.named_modules("", /*include_self=*/false)) visit(item.key(), *item.value());
  parts->train = [&module](bool on) { module.train(on); };
  return checked(std::move(parts));
}

std::shared_ptr<ModelParts> parts_of(torch::jit::Module& module) {
  auto parts = std::make_shared<ModelParts>();
  Collector collector(*parts);
  for (const auto& part : module.named_modules()) {
    collector.begin_group();
    for (const auto& item : part.value.named_parameters(/*recurse=*/false)) {
      collector.parameter(joined(part.name, item.name), item.value);
    }
    for (const auto& item : part.value.named_buffers(/*recurse=*/false))
      collector.buffer(joined(part.name, item.name), item.value);
    collector.end_group();
  }
  parts->train = [&module](bool on) { module.train(on); };
  return checked(std::move(parts));
}

void make_small_ones_persistent(ModelParts& parts, int64_t threshold, int64_t most) {
  std::vector<std::vector<ModelParameter>> groups;
  for (auto& group : parts.groups) {
    std::vector<ModelParameter> small, rest;
    for (ModelParameter& parameter : group) {
      const int64_t size = parameter.spec.numel();
      const bool is_small = size <= threshold && size <= most;
      if (is_small) most -= size;
      (is_small ? small : rest).push_back(std::move(parameter));
    }
    if (!rest.empty()) groups.push_back(std::move(rest));
    if (small.empty()) continue;
    parts.persistent.insert(groups.size());
    groups.push_back(std::move(small));
  }
  parts.groups = std::move(groups);
}

}  // namespace dsat::trainer
