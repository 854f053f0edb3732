// A TorchScript module for the engine. One that was exported from a torch.nn.Sequential is a chain, of which activation
// checkpointing can recompute parts.
//
// Threading: one rank, one thread. Errors: dsat::Error in one line.
#ifndef DSAT_TRAINER_MODEL_SCRIPT_MODULE_H_
#define DSAT_TRAINER_MODEL_SCRIPT_MODULE_H_

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <vector>

#include "dsat/trainer/engine.h"
#include "layout/recompute_segments.h"

namespace dsat::trainer {

// Its tensors lie on `device`, wherever it was exported.
torch::jit::Module load_script(const std::string& path, at::Device device);

// The layers of one that was exported from a torch.nn.Sequential; for others an error that names `who` needs them.
std::vector<torch::jit::Module> script_layers(const torch::jit::Module& module, const std::string& who);

// Of --input-spec, for such a chain.
void require_one_input(size_t count);

// What a forward has returned, or the first of a tuple.
at::Tensor output_of(const c10::IValue& value);

class ScriptModule {
 public:
  // Keeps all activations.
  ScriptModule(const std::string& path, at::Device device);

  // Computes the layers once more in backward, in `count` segments; 0: the square root of the layers' number.
  void recompute(int64_t count);

  // The output, or the first of a tuple of outputs.
  at::Tensor forward(std::vector<c10::IValue> inputs);

  torch::jit::Module& module() { return module_; }
  const Segments& segments() const { return segments_; }

 private:
  at::Tensor run(const Segment& segment, at::Tensor x);

  torch::jit::Module module_;
  std::vector<torch::jit::Module> layers_;  // that segments_ counts
  Segments segments_;
};

std::shared_ptr<ModelParts> parts_of(ScriptModule& script);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MODEL_SCRIPT_MODULE_H_
