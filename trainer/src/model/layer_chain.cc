// Two chains: a built-in model, whose layers get their tensors as arguments, and a user's PipelineModule, whose modules
// keep theirs. A user's modules are made layer by layer with a seed each, so that every cut gives them the same values.
#include "model/layer_chain.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <map>
#include <set>
#include <utility>

#include "base/random.h"

namespace dsat::trainer {
namespace {

// A built-in model's layers have no tensors of their own: the leaves live in what build() returns.
class ModelChain : public LayerChain {
 public:
  explicit ModelChain(const Model& model) : model_(model) {
    for (const auto& layer : model.layers()) {
      ChainLayer described;
      for (const ParameterSpec& spec : layer->parameters()) {
        described.num_params += spec.numel();
        ++described.num_tensors;
      }
      layers_.push_back(described);
    }
  }

  StageLayers build(const Segment& stage) const override {
    StageLayers built;
    for (size_t i = 0; i < stage.begin; ++i) built.parts.next_stream += layers_[i].num_tensors;
    for (size_t i = stage.begin; i < stage.end; ++i) {
      const Layer* const layer = model_.layers()[i].get();
      const Tensors leaves = add_layer(*layer, i, built.parts);
      built.forward.push_back([layer, leaves](const at::Tensor& x) { return layer->forward(x, leaves); });
    }
    return built;
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override {
    return model_.loss(output, target);
  }

 private:
  const Model& model_;
};

using ModulePtr = std::shared_ptr<torch::nn::Module>;

// Counting needs each module once; it is dropped again, so that a rank holds the layers of its stage only.
class ModuleChain : public LayerChain {
 public:
  ModuleChain(PipelineModule module, uint64_t seed) : module_(std::move(module)), seed_(seed) {
    for (size_t i = 0; i < module_.layers.size(); ++i) {
      const std::string& tie = module_.layers[i].tie();
      first_of_tie_.emplace(tie, i);
      layers_.push_back(counted_layer(make(i)->parameters()));
      layers_.back().tie = tie;
    }
  }

  StageLayers build(const Segment& stage) const override {
    StageLayers built;
    std::map<std::string, ModulePtr> shared;  // by tie: what a layer of this stage has made
    std::vector<ModulePtr> modules;
    for (size_t i = stage.begin; i < stage.end; ++i) {
      const LayerSpec& spec = module_.layers[i];
      // Layers of one tie in the same stage share one module, and its parameters belong to the first of them.
      const auto known = spec.tie().empty() ? shared.end() : shared.find(spec.tie());
      const bool is_first = known == shared.end();
      const ModulePtr module = is_first ? make(i) : known->second;
      if (!spec.tie().empty()) shared.emplace(spec.tie(), module);
      modules.push_back(module);
      built.parts.groups.emplace_back();
      if (is_first) add_module(*module, layer_prefix(maker_of(i)), built.parts);
      built.forward.push_back([module, forward = spec.forward()](const at::Tensor& x) { return forward(*module, x); });
    }
    built.parts.train = [modules](bool on) {
      for (const ModulePtr& module : modules) module->train(on);
    };
    return built;
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override {
    return module_.loss(output, target);
  }

 private:
  static void add_module(const torch::nn::Module& module, const std::string& prefix, ModelParts& parts) {
    for (const auto& item : module.named_parameters()) parts.add_parameter(prefix + item.key(), item.value());
    for (const auto& item : module.named_buffers()) parts.add_buffer(prefix + item.key(), item.value());
  }

  // The first layer of a tie, in the whole chain, makes the module for all of them: its number decides values and
  // names.
  size_t maker_of(size_t index) const {
    const std::string& tie = module_.layers[index].tie();
    return tie.empty() ? index : first_of_tie_.at(tie);
  }

  // A layer that is a function has no module: an empty one stands in for it.
  ModulePtr make(size_t index) const {
    const size_t maker = maker_of(index);
    const LayerSpec& spec = module_.layers[maker];
    if (!spec.make()) return std::make_shared<torch::nn::Module>();
    at::manual_seed(RandomStream(seed_, maker).bits(0));
    return spec.make()();
  }

  PipelineModule module_;
  uint64_t seed_;
  std::map<std::string, size_t> first_of_tie_;
};

}  // namespace

ChainLayer LayerChain::total() const {
  ChainLayer sum;
  std::set<std::string> seen;
  for (const ChainLayer& layer : layers_) {
    if (!layer.tie.empty() && !seen.insert(layer.tie).second) continue;
    sum.num_params += layer.num_params;
    sum.num_tensors += layer.num_tensors;
    sum.num_frozen += layer.num_frozen;
  }
  return sum;
}

Tensors add_layer(const Layer& layer, size_t index, ModelParts& parts) {
  Tensors leaves;
  parts.groups.emplace_back();
  for (ParameterSpec spec : layer.parameters()) {
    spec.name = layer_prefix(index) + spec.name;
    spec.stream = parts.next_stream++;
    leaves.push_back(at::empty({0}, at::TensorOptions().dtype(at::kFloat)).set_requires_grad(true));
    parts.groups.back().push_back({std::move(spec), leaves.back(), /*has_values=*/false});
  }
  return leaves;
}

std::unique_ptr<LayerChain> chain_of(const Model& model) { return std::make_unique<ModelChain>(model); }

std::unique_ptr<LayerChain> chain_of(PipelineModule module, uint64_t seed) {
  return std::make_unique<ModuleChain>(std::move(module), seed);
}

}  // namespace dsat::trainer
