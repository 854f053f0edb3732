#include "model/script_module.h"

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "dsat/trainer/checkpoint.h"
#include "zero/model_parts.h"

namespace dsat::trainer {
namespace {

// Its own forward is its children's, one after the other. A class derived from it has a name of its own, and perhaps a
// forward of its own.
bool is_sequential(const torch::jit::Module& module) {
  const auto& name = module.type()->name();
  return name && name->name() == "Sequential" &&
         name->qualifiedName().rfind("__torch__.torch.nn.modules.container.", 0) == 0;
}

// Of what the archive's reader refuses LibTorch tells how it got there, not what was expected.
std::string why_unreadable(const std::string& path, const std::string& libtorch) {
  if (::access(path.c_str(), R_OK) != 0) return std::string("cannot be read: ") + std::strerror(errno);
  if (libtorch.find("PytorchStreamReader") == std::string::npos) return libtorch.substr(0, libtorch.find('\n'));
  return "is no TorchScript module; expected a file that torch.jit.script(model).save(FILE) or a traced model has "
         "written, no state_dict and no pickled model";
}

}  // namespace

torch::jit::Module load_script(const std::string& path, at::Device device) {
  // It would specialise the graph in the first steps, which are then several times slower.
  torch::jit::getProfilingMode() = false;
  try {
    torch::jit::Module module = torch::jit::load(path, device);
    module.train();
    return module;
  } catch (const std::exception& error) {
    throw Error("--torchscript " + path + ": " + why_unreadable(path, error.what()));
  }
}

at::Tensor output_of(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isTuple() && !value.toTuple()->elements().empty() && value.toTuple()->elements()[0].isTensor()) {
    return value.toTuple()->elements()[0].toTensor();
  }
  throw Error("the TorchScript module returns a " + value.tagKind() +
              "; expected a tensor, or a tuple that begins with one");
}

std::vector<torch::jit::Module> script_layers(const torch::jit::Module& module, const std::string& who) {
  if (!is_sequential(module)) {
    throw Error(who + ": the TorchScript module is a " + module.type()->name()->name() +
                "; only one that was exported from a torch.nn.Sequential is known to be a chain of layers");
  }
  std::vector<torch::jit::Module> layers;
  for (const torch::jit::Module& layer : module.children()) layers.push_back(layer);
  return layers;
}

void require_one_input(size_t count) {
  if (count != 1) throw Error("a torch.nn.Sequential takes one input; --input-spec names " + std::to_string(count));
}

ScriptModule::ScriptModule(const std::string& path, at::Device device) : module_(load_script(path, device)) {}

void ScriptModule::recompute(int64_t count) {
  layers_ = script_layers(module_, "--activation-checkpointing");
  segments_ = segments_of(layers_.size(), count);
}

at::Tensor ScriptModule::run(const Segment& segment, at::Tensor x) {
  for (size_t i = segment.begin; i < segment.end; ++i) x = output_of(layers_[i].forward({x}));
  return x;
}

at::Tensor ScriptModule::forward(std::vector<c10::IValue> inputs) {
  if (segments_.empty()) return output_of(module_.forward(std::move(inputs)));
  require_one_input(inputs.size());
  at::Tensor x = inputs.front().toTensor();
  for (const Segment& segment : segments_) {
    x = checkpoint([this, segment](const std::vector<at::Tensor>& in) { return run(segment, in.front()); }, {x});
  }
  return x;
}

std::shared_ptr<ModelParts> parts_of(ScriptModule& script) {
  auto parts = parts_of(script.module());
  parts->activation_checkpoints = script.segments().size();
  return parts;
}

}  // namespace dsat::trainer
