// A model as a chain of layers, cut into stages that different ranks compute: pipeline parallelism.
//
//   PipelineModule module({layer<torch::nn::Linear>(784, 256), torch::relu, layer<torch::nn::Linear>(256, 10)},
//                         [](const at::Tensor& output, const at::Tensor& target) { ... }, /*num_stages=*/2);
//   auto engine = initialize(module, world, world.config());
//   for (...) double loss = engine->train_batch(iterator);
//
// The micro batches of one optimizer step go through the stages in the order 1F1B: a stage holds the activations of at
// most as many micro batches as there are stages from it to the last. Ranks of the same stage train data-parallel, with
// ZeRO 0 or 1.
// Threading: one rank, one thread; construction, train_batch and eval_batch are collective. Errors: dsat::Error in one
// line, PeerLost, whatever LibTorch throws (out of memory).
#ifndef DSAT_TRAINER_PIPELINE_H_
#define DSAT_TRAINER_PIPELINE_H_

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsat/trainer/engine.h"
#include "dsat/trainer/mpu.h"
#include "dsat/trainer/partition_method.h"
#include "dsat/trainer/world.h"

namespace dsat::trainer {

// One layer, from one tensor to one tensor. Between two stages that tensor is of a floating-point type and, while
// training, of the same shape for every micro batch.
class LayerSpec {
 public:
  using Make = std::function<std::shared_ptr<torch::nn::Module>()>;
  using Forward = std::function<at::Tensor(torch::nn::Module&, const at::Tensor&)>;

  // A function without parameters; nothing is changed in place.
  LayerSpec(std::function<at::Tensor(const at::Tensor&)> function)
      : forward_([function](torch::nn::Module&, const at::Tensor& x) { return function(x); }) {}
  // (A module holder can be called, too, but has parameters.)
  template <class F, class = std::enable_if_t<std::is_invocable_r_v<at::Tensor, F, const at::Tensor&> &&
                                              !std::is_base_of_v<torch::detail::ModuleHolderIndicator, F>>>
  LayerSpec(F function) : LayerSpec(std::function<at::Tensor(const at::Tensor&)>(std::move(function))) {}
  // A module that is there already. Every rank then holds the parameters of all layers until its engine is built;
  // layer<M>() below spares them that.
  template <class M, class = std::enable_if_t<std::is_base_of_v<torch::nn::Module, M>>>
  LayerSpec(std::shared_ptr<M> module)
      : make_([module] { return module; }),
        forward_([](torch::nn::Module& m, const at::Tensor& x) { return m.as<M>()->forward(x); }) {}
  template <class M>
  LayerSpec(const torch::nn::ModuleHolder<M>& module) : LayerSpec(module.ptr()) {}
  LayerSpec(torch::nn::AnyModule module)
      : make_([module] { return module.ptr(); }),
        forward_([module](torch::nn::Module&, const at::Tensor& x) mutable { return module.forward<at::Tensor>(x); }) {}
  // `make`: nullptr for a layer without parameters. `tie`: see tied_layer().
  LayerSpec(Make make, Forward forward, std::string tie)
      : make_(std::move(make)), forward_(std::move(forward)), tie_(std::move(tie)) {}

  const Make& make() const { return make_; }
  const Forward& forward() const { return forward_; }
  const std::string& tie() const { return tie_; }

 private:
  Make make_;
  Forward forward_;
  std::string tie_;
};

namespace detail {

// torch::nn::Linear is a holder of LinearImpl; a user's class may be either.
template <class M, bool is_holder = std::is_base_of_v<torch::detail::ModuleHolderIndicator, M>>
struct ModuleOf {
  using Type = typename M::ContainedType;
};
template <class M>
struct ModuleOf<M, false> {
  using Type = M;
};

}  // namespace detail

// Layers that share their parameters: the first of a `key` makes the module, the others use it, in their own way if
// they like: forward(module, x). Where they are in different stages each stage has a copy, and the sum of the copies'
// gradients updates all of them.
//   tied_layer<torch::nn::Embedding>("words", [](auto& m, auto& x) { return torch::matmul(x, m.weight.t()); }, 512, 64)
template <class M, class F, class... Arguments>
LayerSpec tied_layer(std::string key, F forward, Arguments... arguments) {
  using Module = typename detail::ModuleOf<M>::Type;
  return LayerSpec([=] { return std::make_shared<Module>(arguments...); },
                   [forward](torch::nn::Module& m, const at::Tensor& x) { return forward(*m.as<Module>(), x); },
                   std::move(key));
}

// M(arguments...), built by the ranks whose stage it is in; to count its parameters every rank builds it once and lets
// it go. The values of its parameters depend on the engine's seed and its place in the chain only.
template <class M, class... Arguments>
LayerSpec layer(Arguments... arguments) {
  return tied_layer<M>(
      "", [](auto& module, const at::Tensor& x) { return module.forward(x); }, arguments...);
}

// The loss of one micro batch: a scalar, its mean. Called by the last stage.
using PipelineLoss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

struct PipelineModule {
  // `num_stages`: 0 for what the configuration's pipeline.stages says; where all three batch sizes are configured it
  // must say it.
  PipelineModule(std::vector<LayerSpec> layers, PipelineLoss loss, int num_stages,
                 PartitionMethod partition = PartitionMethod::parameters)
      : layers(std::move(layers)), loss(std::move(loss)), num_stages(num_stages), partition(partition) {}

  std::vector<LayerSpec> layers;
  PipelineLoss loss;
  int num_stages;
  PartitionMethod partition;
};

class LayerChain;

// Trains a PipelineModule. All ranks make the same calls: train_batch() in place of forward(), backward() and step().
class PipelineEngine : public ModelEngine {
 public:
  // `activation_checkpointing`: recompute activations in backward, in activation_checkpointing.number_checkpoints
  // segments; pipeline.activation_checkpoint_interval asks for it too.
  PipelineEngine(std::unique_ptr<LayerChain> chain, World& world, const Json& config, bool activation_checkpointing);
  ~PipelineEngine() override;
  void backward(const at::Tensor& loss) = delete;
  void step() = delete;

  // The next micro batch of this rank's share: the model's input and the loss's target, [samples, ...] each. Asked for
  // once a micro batch where mpu().should_build_data_loader; ranks of one pipeline must get the same ones.
  using MicroBatches = std::function<std::vector<at::Tensor>()>;

  // One optimizer step over gradient_accumulation_steps micro batches. The mean loss over them and the data-parallel
  // ranks, the same on every rank.
  double train_batch(const MicroBatches& next);
  // The mean loss over as many micro batches, without training.
  double eval_batch(const MicroBatches& next);
  // From whatever has next(), like a BatchIterator.
  template <class Iterator, class = decltype(std::declval<Iterator&>().next())>
  double train_batch(Iterator& iterator) {
    return train_batch(MicroBatches([&] { return iterator.next(); }));
  }
  template <class Iterator, class = decltype(std::declval<Iterator&>().next())>
  double eval_batch(Iterator& iterator) {
    return eval_batch(MicroBatches([&] { return iterator.next(); }));
  }

  ModelParallelUnit mpu() const;
  int num_stages() const;
  int stage() const;  // of this rank, from 0

 private:
  class Pipeline;
  PipelineEngine(std::unique_ptr<Pipeline> pipeline, World& world, const Json& config);
  std::unique_ptr<Pipeline> pipeline_;
};

// Collective. `config`: a DeepSpeed configuration. Errors: dsat::Error that names the key.
std::unique_ptr<PipelineEngine> initialize(PipelineModule module, World& world, Json config);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PIPELINE_H_
