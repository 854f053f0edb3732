// A chain of layers of which a rank builds only those of its stage: the built-in models and a user's PipelineModule.
//
// Threading: one rank, one thread. Errors: whatever a user's layer throws.
#ifndef DSAT_TRAINER_MODEL_LAYER_CHAIN_H_
#define DSAT_TRAINER_MODEL_LAYER_CHAIN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dsat/trainer/pipeline.h"
#include "layout/recompute_segments.h"
#include "model/model.h"
#include "zero/model_parts.h"

namespace dsat::trainer {

struct ChainLayer {
  int64_t num_params = 0;   // trained elements
  int64_t num_tensors = 0;  // that hold them
  std::string tie;          // layers of one name share their parameters; empty: shares with none
};

// Of a layer that has these tensors; those that need no gradient are not trained.
template <class Parameters>
ChainLayer counted(const Parameters& parameters) {
  ChainLayer layer;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    layer.num_params += parameter.numel();
    ++layer.num_tensors;
  }
  return layer;
}

// Names of parameters begin with it: wherever the chain is cut they are the same.
inline std::string name_of_layer(size_t index) { return "layer" + std::to_string(index) + "."; }

// Some of a chain's layers, for an engine. A group of `parts` for each, empty where another layer has the parameters.
struct StageLayers {
  std::vector<std::function<at::Tensor(const at::Tensor&)>> forward;
  ModelParts parts;
};

class LayerChain {
 public:
  virtual ~LayerChain() = default;
  const std::vector<ChainLayer>& layers() const { return layers_; }
  // Of the whole chain; what layers share counts once.
  int64_t num_params() const;
  virtual StageLayers build(const Segment& stage) const = 0;
  virtual at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const = 0;

 protected:
  std::vector<ChainLayer> layers_;
};

// Borrows the model.
std::unique_ptr<LayerChain> chain_of(const Model& model);
// Counts the parameters by building each layer once. Equal seeds give equal values, however the chain is cut.
std::unique_ptr<LayerChain> chain_of(PipelineModule module, uint64_t seed);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MODEL_LAYER_CHAIN_H_
