// A TorchScript module, exported from a torch.nn.Sequential, as a chain of layers that a pipeline can cut.
//
// Ownership: the chain owns what it has read. Threading: the compute thread. Errors: dsat::Error in one line for a file
// that is no such module.
#ifndef DSAT_TRAINER_MODEL_SCRIPT_CHAIN_H_
#define DSAT_TRAINER_MODEL_SCRIPT_CHAIN_H_

#include <functional>
#include <memory>
#include <string>

#include "model/layer_chain.h"

namespace dsat::trainer {

// The loss as a scalar. `target`: whatever the batch has as its target.
using ScriptLoss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

// The file is read once to count and once more to build: a rank keeps the layers of its stage only.
std::unique_ptr<LayerChain> chain_of_script(const std::string& path, at::Device device, ScriptLoss loss);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MODEL_SCRIPT_CHAIN_H_
