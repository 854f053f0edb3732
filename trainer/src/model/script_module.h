// A TorchScript module for the engine. One that was exported from a torch.nn.Sequential is a chain, and activation
// checkpointing can recompute parts of it.
//
// Ownership: owns the module that it has loaded. Threading: the compute thread. Errors: dsat::Error in one line; what
// the script itself throws.
#ifndef DSAT_TRAINER_MODEL_SCRIPT_MODULE_H_
#define DSAT_TRAINER_MODEL_SCRIPT_MODULE_H_

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <vector>

#include "dsat/trainer/engine.h"
#include "layout/recompute_segments.h"

namespace dsat::trainer {

// Loads a module in training mode. Its tensors lie on `device`, wherever it was exported. With `shard_among` each rank
// keeps its part of the parameters as they are read (dsat/trainer/in_shards.h); on the CPU alone.
torch::jit::Module load_script(const std::string& path, at::Device device, Comm* shard_among = nullptr);

// The layers, with their names, of a module that was exported from a torch.nn.Sequential. Others are refused, in the
// name of `who`, the option or feature that needs layers.
std::vector<torch::jit::NameModule> script_layers(const torch::jit::Module& module, const std::string& who);

// Throws unless --input-spec names one input, which is what such a chain takes.
void require_one_input(size_t count);

// The tensor that a forward has returned, or the first of a tuple.
at::Tensor output_of(const c10::IValue& value);

class ScriptModule {
 public:
  // Keeps all activations.
  ScriptModule(const std::string& path, at::Device device, Comm* shard_among = nullptr);

  // Makes backward compute the layers once more, in `count` segments; 0: the square root of the number of layers.
  void recompute(int64_t count);
  // The same in segments of at most `interval` layers.
  void recompute_at_intervals(int64_t interval);

  // The output, or the first of a tuple of outputs.
  at::Tensor forward(std::vector<c10::IValue> inputs);

  torch::jit::Module& module() { return module_; }
  const Segments& segments() const { return segments_; }

 private:
  // In the name of `who`, as script_layers().
  void take_layers(const std::string& who);
  at::Tensor run(const Segment& segment, at::Tensor x);

  torch::jit::Module module_;
  std::vector<torch::jit::Module> layers_;  // of a chain that is recomputed; else empty
  Segments segments_;
};

std::shared_ptr<ModelParts> parts_of(ScriptModule& script);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MODEL_SCRIPT_MODULE_H_
