// The children of a scripted torch.nn.Sequential are the chain's layers. The file is read whole each time, and what a
// rank does not need is dropped: the format has no way to read a part.
#include "model/script_chain.h"

#include <utility>

#include "model/script_module.h"

namespace dsat::trainer {
namespace {

// A fresh copy each time, with the values of the file.
std::vector<torch::jit::Module> layers_of_file(const std::string& path, at::Device device) {
  return script_layers(load_script(path, device), "a pipeline");
}

class ScriptChain : public LayerChain {
 public:
  ScriptChain(std::string path, at::Device device, ScriptLoss loss)
      : path_(std::move(path)), device_(device), loss_(std::move(loss)) {
    for (const torch::jit::Module& layer : layers_of_file(path_, at::kCPU)) {
      layers_.push_back(counted_layer(layer.parameters()));
    }
  }

  StageLayers build(const Segment& stage) const override {
    StageLayers built;
    const std::vector<torch::jit::Module> all = layers_of_file(path_, device_);
    std::vector<torch::jit::Module> own(all.begin() + static_cast<std::ptrdiff_t>(stage.begin),
                                        all.begin() + static_cast<std::ptrdiff_t>(stage.end));
    for (size_t i = 0; i < own.size(); ++i) {
      built.parts.groups.emplace_back();
      add_module(own[i], layer_prefix(stage.begin + i), built.parts);
      built.forward.push_back([layer = own[i]](const at::Tensor& x) mutable { return output_of(layer.forward({x})); });
    }
    built.parts.train = [own](bool on) mutable {
      for (torch::jit::Module& layer : own) layer.train(on);
    };
    return built;
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override { return loss_(output, target); }

 private:
  static void add_module(const torch::jit::Module& layer, const std::string& prefix, ModelParts& parts) {
    for (const auto& item : layer.named_parameters()) parts.add_parameter(prefix + item.name, item.value);
    for (const auto& item : layer.named_buffers()) parts.add_buffer(prefix + item.name, item.value);
  }

  std::string path_;
  at::Device device_;
  ScriptLoss loss_;
};

}  // namespace

std::unique_ptr<LayerChain> chain_of_script(const std::string& path, at::Device device, ScriptLoss loss) {
  return std::make_unique<ScriptChain>(path, device, std::move(loss));
}

}  // namespace dsat::trainer
