// The children of a scripted torch.nn.Sequential are the chain's layers. Parameters keep their names in the module.
// The file is read whole each time, and what a rank does not need is dropped: the format has no way to read a part.
#include "model/script_chain.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "model/script_module.h"

namespace dsat::trainer {
namespace {

// A fresh copy each time, with the values of the file.
std::vector<torch::jit::NameModule> layers_of_file(const std::string& path, at::Device device) {
  return script_layers(load_script(path, device), "a pipeline");
}

std::string full_name(const torch::jit::NameModule& layer, const std::string& of_part) {
  return fmt::format("{}.{}", layer.name, of_part);
}

// In the chain each name is a parameter of its own: one tensor under two names would become two.
void refuse_shared_parameters(const std::vector<torch::jit::NameModule>& layers) {
  std::map<const c10::TensorImpl*, std::string> names;
  for (const torch::jit::NameModule& layer : layers) {
    for (const auto& item : layer.value.named_parameters()) {
      const std::string name = full_name(layer, item.name);
      const auto [known, is_first] = names.emplace(item.value.unsafeGetTensorImpl(), name);
      if (is_first) continue;
      throw Error(
          fmt::format("a pipeline: {} and {} of the TorchScript module are one parameter, which layers of a pipeline "
                      "cannot share; train the module without stages",
                      known->second, name));
    }
  }
}

class ScriptChain : public LayerChain {
 public:
  ScriptChain(std::string path, at::Device device, ScriptLoss loss)
      : path_(std::move(path)), device_(device), loss_(std::move(loss)) {
    const std::vector<torch::jit::NameModule> layers = layers_of_file(path_, at::kCPU);
    refuse_shared_parameters(layers);
    for (const torch::jit::NameModule& layer : layers) layers_.push_back(counted_layer(layer.value.parameters()));
  }

  StageLayers build(const Segment& stage) const override {
    StageLayers built;
    const std::vector<torch::jit::NameModule> all = layers_of_file(path_, device_);
    std::vector<torch::jit::Module> own;
    for (size_t i = stage.begin; i < stage.end; ++i) {
      own.push_back(all[i].value);
      add_layer(all[i], built.parts);
      built.forward.push_back(
          [layer = own.back()](const at::Tensor& x) mutable { return output_of(layer.forward({x})); });
    }
    built.parts.train = [own](bool on) mutable {
      for (torch::jit::Module& layer : own) layer.train(on);
    };
    return built;
  }
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const override { return loss_(output, target); }

 private:
  static void add_layer(const torch::jit::NameModule& layer, ModelParts& parts) {
    parts.groups.emplace_back();
    for (const auto& item : layer.value.named_parameters()) {
      parts.add_parameter(full_name(layer, item.name), item.value);
    }
    for (const auto& item : layer.value.named_buffers()) parts.add_buffer(full_name(layer, item.name), item.value);
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
