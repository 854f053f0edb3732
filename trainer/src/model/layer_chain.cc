#include "model/layer_chain.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <map>
#include <set>
#include <utility>

#include "base/random.h"

namespace dsat::trainer {
namespace {

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
    for (size_t i = 0; i < stage.begin; ++i) built.parts.first_id += layers_[i].num_tensors;
    for (size_t i = stage.begin; i < stage.end; ++i) {
      const Layer* const layer = model_.layers()[i].get();
      Tensors leaves;
      built.parts.groups.emplace_back();
      for (const ParameterSpec& spec : layer->parameters()) {
        leaves.push_back(at::empty({0}, at::TensorOptions().dtype(at::kFloat)).set_requires_grad(true));
        built.parts.groups.back().push_back({spec, leaves.back(), /*has_values=*/false});
        std::string& name = built.parts.groups.back().back().spec.name;
        name = name_of_layer(i) + name;
      }
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

class ModuleChain : public LayerChain {
 public:
  ModuleChain(PipelineModule module, uint64_t seed) : module_(std::move(module)), seed_(seed) {
    for (size_t i = 0; i < module_.layers.size(); ++i) {
      const std::string& tie = module_.layers[i].tie();
      first_of_tie_.emplace(tie, i);
      layers_.push_back(counted(make(i)->parameters()));
      layers_.back().tie = tie;
    }
  }

  StageLayers build(const Segment& stage) const override {
    StageLayers built;
    std::map<std::string, ModulePtr> shared;
    std::vector<ModulePtr> modules;
    for (size_t i = stage.begin; i < stage.end; ++i) {
      const LayerSpec& spec = module_.layers[i];
      const auto known = spec.tie().empty() ? shared.end() : shared.find(spec.tie());
      const bool is_first = known == shared.end();
      const ModulePtr module = is_first ? make(i) : known->second;
      if (!spec.tie().empty()) shared.emplace(spec.tie(), module);
      modules.push_back(module);
      built.parts.groups.emplace_back();
      if (is_first) collect(*module, name_of_layer(maker_of(i)), built.parts);
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
  // What it trains goes to the last group.
  static void collect(const torch::nn::Module& module, const std::string& prefix, ModelParts& parts) {
    for (const auto& item : module.named_parameters()) {
      const at::Tensor& tensor = item.value();
      if (tensor.requires_grad()) {
        parts.groups.back().push_back({{prefix + item.key(), tensor.sizes().vec()}, tensor, /*has_values=*/true});
      } else {
        parts.others.push_back({prefix + item.key(), tensor});
      }
    }
    for (const auto& item : module.named_buffers()) parts.others.push_back({prefix + item.key(), item.value()});
  }

  // The first layer of a tie makes the module of all: it decides the values, and names them.
  size_t maker_of(size_t index) const {
    const std::string& tie = module_.layers[index].tie();
    return tie.empty() ? index : first_of_tie_.at(tie);
  }

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

int64_t LayerChain::num_params() const {
  int64_t sum = 0;
  std::set<std::string> seen;
  for (const ChainLayer& layer : layers_) {
    if (layer.tie.empty() || seen.insert(layer.tie).second) sum += layer.num_params;
  }
  return sum;
}

std::unique_ptr<LayerChain> chain_of(const Model& model) { return std::make_unique<ModelChain>(model); }

std::unique_ptr<LayerChain> chain_of(PipelineModule module, uint64_t seed) {
  return std::make_unique<ModuleChain>(std::move(module), seed);
}

}  // namespace dsat::trainer
