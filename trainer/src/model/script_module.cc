// Loads TorchScript files and runs them, whole or layer by layer in recomputed segments. Whether a module is a chain is
// read from the class name that the exporter has written.
#include "model/script_module.h"

#include <fmt/format.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "dsat/trainer/in_shards.h"
#include "dsat/trainer/recompute.h"
#include "zero/model_parts.h"

namespace dsat::trainer {
namespace {

// Whether forward calls the children one after the other and does nothing else. A class that is derived from Sequential
// has another name, and perhaps another forward.
bool is_sequential(const torch::jit::Module& module) {
  const auto& name = module.type()->name();
  return name && name->name() == "Sequential" &&
         name->qualifiedName().rfind("__torch__.torch.nn.modules.container.", 0) == 0;
}

std::vector<at::Tensor> trained(const torch::jit::Module& module) {
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : module.parameters()) {
    if (parameter.requires_grad()) parameters.push_back(parameter);
  }
  return parameters;
}

// A person's reason for what LibTorch throws. For a file of another format its own text describes the reader's state
// and not the file; for a folder it depends on the file system.
std::string why_unreadable(const std::string& path, const std::string& libtorch) {
  if (::access(path.c_str(), R_OK) != 0) return fmt::format("cannot be read: {}", std::strerror(errno));
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(path, error);
  if (!is_folder && libtorch.find("PytorchStreamReader") == std::string::npos) {
    return libtorch.substr(0, libtorch.find('\n'));
  }
  return "is no TorchScript module; expected a file that torch.jit.script(model).save(FILE) or a traced model has "
         "written, no state_dict and no pickled model";
}

}  // namespace

torch::jit::Module load_script(const std::string& path, at::Device device, Comm* shard_among) {
  // Profiling mode would specialise the graph in the first steps, which are then several times slower: a tuning trial
  // measures just these.
  torch::jit::getProfilingMode() = false;
  std::optional<ShardedConstruction> in_shards;
  if (shard_among != nullptr && device.is_cpu()) in_shards.emplace(*shard_among);
  torch::jit::Module module;
  try {
    module = torch::jit::load(path, device);
  } catch (const std::exception& error) {
    throw Error(fmt::format("--torchscript {}: {}", path, why_unreadable(path, error.what())));
  }
  if (in_shards) in_shards->finish(trained(module));
  module.train();
  return module;
}

at::Tensor output_of(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isTuple() && !value.toTuple()->elements().empty() && value.toTuple()->elements()[0].isTensor()) {
    return value.toTuple()->elements()[0].toTensor();
  }
  throw Error(fmt::format("the TorchScript module returns a {}; expected a tensor, or a tuple that begins with one",
                          value.tagKind()));
}

std::vector<torch::jit::NameModule> script_layers(const torch::jit::Module& module, const std::string& who) {
  if (!is_sequential(module)) {
    throw Error(
        fmt::format("{}: the TorchScript module is a {}; only one that was exported from a torch.nn.Sequential is "
                    "known to be a chain of layers",
                    who, module.type()->name()->name()));
  }
  std::vector<torch::jit::NameModule> layers;
  for (const torch::jit::NameModule& layer : module.named_children()) layers.push_back(layer);
  return layers;
}

void require_one_input(size_t count) {
  if (count != 1) throw Error(fmt::format("a torch.nn.Sequential takes one input; --input-spec names {}", count));
}

ScriptModule::ScriptModule(const std::string& path, at::Device device, Comm* shard_among)
    : module_(load_script(path, device, shard_among)) {}

void ScriptModule::recompute(int64_t count) {
  take_layers("--activation-checkpointing");
  segments_ = segments_of(layers_.size(), count);
}

void ScriptModule::recompute_at_intervals(int64_t interval) {
  take_layers("pipeline.activation_checkpoint_interval");
  segments_ = segments_of_interval(layers_.size(), interval);
}

void ScriptModule::take_layers(const std::string& who) {
  for (auto& layer : script_layers(module_, who)) layers_.push_back(std::move(layer.value));
}

at::Tensor ScriptModule::run(const Segment& segment, at::Tensor x) {
  for (size_t i = segment.begin; i < segment.end; ++i) x = output_of(layers_[i].forward({x}));
  return x;
}

// Segments keep their first input only, so a chain takes one tensor.
at::Tensor ScriptModule::forward(std::vector<c10::IValue> inputs) {
  if (segments_.empty()) return output_of(module_.forward(std::move(inputs)));
  require_one_input(inputs.size());
  at::Tensor x = inputs.front().toTensor();
  for (const Segment& segment : segments_) {
    x = trainer::recompute([this, segment](const std::vector<at::Tensor>& in) { return run(segment, in.front()); },
                           {x});
  }
  return x;
}

std::shared_ptr<ModelParts> parts_of(ScriptModule& script) {
  auto parts = parts_of(script.module());
  parts->recomputed_segments = script.segments().size();
  return parts;
}

}  // namespace dsat::trainer
