// Takes a module's parameters and buffers apart: one group for each submodule that has parameters of its own, because a
// submodule is what forward uses at one time, so stage 3 gathers its parameters together.
#include "zero/model_parts.h"

#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "dsat/error.h"
#include "dsat/trainer/engine.h"

namespace dsat::trainer {
namespace {

// The flat array holds dense floating-point elements, and the engine replaces the memory of leaves.
void check_trainable(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.layout() != at::kStrided) {
    throw Error(fmt::format("parameter {} is no dense floating-point tensor", name));
  }
  if (!tensor.is_leaf()) {
    throw Error(fmt::format("parameter {} is computed from others; register those instead", name));
  }
}

// Collects a module's tensors, each once: a tied parameter belongs to the first submodule that has it.
class Collector {
 public:
  explicit Collector(ModelParts& parts) : parts_(parts) {}

  void begin_group() { parts_.groups.emplace_back(); }
  void parameter(const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined() || !is_first(name, tensor)) return;
    if (tensor.requires_grad()) check_trainable(name, tensor);
    parts_.add_parameter(name, tensor);
  }
  void buffer(const std::string& name, const at::Tensor& tensor) {
    if (tensor.defined() && is_first(name, tensor)) parts_.add_buffer(name, tensor);
  }
  void end_group() {
    if (parts_.groups.back().empty()) parts_.groups.pop_back();
  }

 private:
  bool is_first(const std::string& name, const at::Tensor& tensor) {
    const auto [known, is_first] = names_.emplace(tensor.unsafeGetTensorImpl(), name);
    if (!is_first && known->second != name) parts_.aliases[name] = known->second;
    return is_first;
  }

  ModelParts& parts_;
  std::unordered_map<const c10::TensorImpl*, std::string> names_;  // a tied parameter is one tensor under two names
};

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

std::shared_ptr<ModelParts> checked(std::shared_ptr<ModelParts> parts) {
  if (parts->groups.empty()) throw Error("the model has no parameter that requires a gradient: nothing to train");
  return parts;
}

}  // namespace

void ModelParts::add_parameter(const std::string& name, const at::Tensor& tensor) {
  if (tensor.requires_grad()) {
    groups.back().push_back({{name, tensor.sizes().vec()}, tensor, /*has_values=*/true});
  } else {
    untrained.push_back({name, tensor});
    num_frozen += tensor.numel();
  }
}

std::shared_ptr<ModelParts> parts_of(torch::nn::Module& module) {
  auto parts = std::make_shared<ModelParts>();
  Collector collector(*parts);
  const auto visit = [&](const std::string& path, const torch::nn::Module& part) {
    collector.begin_group();
    for (const auto& item : part.named_parameters(/*recurse=*/false)) {
      collector.parameter(joined(path, item.key()), item.value());
    }
    for (const auto& item : part.named_buffers(/*recurse=*/false)) {
      collector.buffer(joined(path, item.key()), item.value());
    }
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
    for (const auto& item : part.value.named_buffers(/*recurse=*/false)) {
      collector.buffer(joined(part.name, item.name), item.value);
    }
    collector.end_group();
  }
  parts->train = [&module](bool on) { module.train(on); };
  return checked(std::move(parts));
}

std::vector<at::Tensor> biases_and_norms(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> small;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(small),
               [](const at::Tensor& parameter) { return parameter.dim() <= 1; });
  return small;
}

std::shared_ptr<ModelParts> with_groups(std::shared_ptr<ModelParts> parts, const std::vector<ParameterGroup>& groups) {
  std::unordered_map<const c10::TensorImpl*, ParameterSpec*> specs;
  for (auto& group : parts->groups) {
    for (ModelParameter& parameter : group) specs[parameter.tensor.unsafeGetTensorImpl()] = &parameter.spec;
  }
  for (const ParameterGroup& group : groups) {
    const auto number = static_cast<int64_t>(parts->update_groups.size());
    parts->update_groups.push_back({group.weight_decay, group.lr_scale});
    for (const at::Tensor& parameter : group.parameters) {
      const auto found = specs.find(parameter.unsafeGetTensorImpl());
      if (found == specs.end()) {
        throw Error(
            fmt::format("parameter group {} has a tensor that is no trained parameter of the model", number - 1));
      }
      if (found->second->update != 0) {
        throw Error(fmt::format("parameter {} is in two parameter groups", found->second->name));
      }
      found->second->update = number;
    }
  }
  return parts;
}

// A group of small parameters goes behind the rest of its own group: the order of forward stays as it was.
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
