// A chain of layers of which a rank builds only those of its stage: the built-in models and a user's PipelineModule.
//
// The names and initial values of parameters do not depend on where the chain is cut.
// Ownership: chain_of(model) borrows the model, the other chain owns its module; StageLayers shares what it has built.
// Threading: the compute thread. Errors: whatever a user's layer throws.
#ifndef DSAT_TRAINER_MODEL_LAYER_CHAIN_H_
#define DSAT_TRAINER_MODEL_LAYER_CHAIN_H_

#include <fmt/format.h>

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
  int64_t num_params = 0;    // trained elements
  uint64_t num_tensors = 0;  // that hold them
  int64_t num_frozen = 0;    // elements of parameters that need no gradient
  std::string tie;           // layers of one name share their parameters; empty: shares with none
};

// Counts a layer's parameters; those that require a gradient are trained.
template <class Parameters>
ChainLayer counted_layer(const Parameters& parameters) {
  ChainLayer layer;
  for (const at::Tensor& parameter : parameters) {
    (parameter.requires_grad() ? layer.num_params : layer.num_frozen) += parameter.numel();
    layer.num_tensors += parameter.requires_grad() ? 1 : 0;
  }
  return layer;
}

// The begin of a parameter's name: "layer3." for those of layer 3 of the whole chain.
inline std::string layer_prefix(size_t index) { return fmt::format("layer{}.", index); }

// Adds the parameters of a built-in layer as a group; returns its leaves, which get memory and values from the engine.
Tensors add_layer(const Layer& layer, size_t index, ModelParts& parts);

// The layers of one stage, for an engine: forward[i] computes layer i, and parts.groups[i] has its parameters. The
// group is empty where a layer before it has the same ones (ties).
struct StageLayers {
  std::vector<std::function<at::Tensor(const at::Tensor&)>> forward;
  ModelParts parts;
};

class LayerChain {
 public:
  virtual ~LayerChain() = default;
  const std::vector<ChainLayer>& layers() const { return layers_; }
  // Sums over the whole chain; what layers share counts once.
  ChainLayer total() const;
  // `stage`: the layers to build, of the whole chain.
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
