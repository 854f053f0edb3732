// Pipeline parallelism: a model is a chain of layers, cut into stages that different ranks compute.
//
//   PipelineModule module({layer<torch::nn::Linear>(784, 256), torch::relu, layer<torch::nn::Linear>(256, 10)},
//                         [](const at::Tensor& output, const at::Tensor& target) { ... }, /*num_stages=*/2);
//   auto engine = initialize(module, world, world.config());
//   for (...) double loss = engine->train_batch(iterator);
//
// The micro batches of one optimizer step pass the stages in the order 1F1B: a stage holds the activations of at most
// as many micro batches as there are stages from it to the last. Ranks of the same stage train data-parallel, with ZeRO
// 0 or 1.
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

// One layer, from one tensor to one tensor. A tensor between two stages has a floating-point type and, in training, the
// same shape for every micro batch.
class LayerSpec {
 public:
  using Make = std::function<std::shared_ptr<torch::nn::Module>()>;
  using Forward = std::function<at::Tensor(torch::nn::Module&, const at::Tensor&)>;

  // A function without parameters. It must not change its input in place.
  LayerSpec(std::function<at::Tensor(const at::Tensor&)> function)
      : forward_([function](torch::nn::Module&, const at::Tensor& x) { return function(x); }) {}
  // (A module holder can be called, too, but has parameters.)
  template <class F, class = std::enable_if_t<std::is_invocable_r_v<at::Tensor, F, const at::Tensor&> &&
                                              !std::is_base_of_v<torch::detail::ModuleHolderIndicator, F>>>
  LayerSpec(F function) : LayerSpec(std::function<at::Tensor(const at::Tensor&)>(std::move(function))) {}
  // An existing module. Every rank then holds the parameters of all layers until its engine is built; layer<M>() below
  // avoids that.
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

// Layers of the same `key` share their parameters: the first makes the module, and the others may use it in their own
// way: forward(module, x). If they are in different stages, each stage has a copy, and the sum of the copies' gradients
// updates all copies.
//   tied_layer<torch::nn::Embedding>("words", [](auto& m, auto& x) { return torch::matmul(x, m.weight.t()); }, 512, 64)
template <class M, class F, class... Arguments>
LayerSpec tied_layer(std::string key, F forward, Arguments... arguments) {
  using Module = typename detail::ModuleOf<M>::Type;
  return LayerSpec([=] { return std::make_shared<Module>(arguments...); },
                   [forward](torch::nn::Module& m, const at::Tensor& x) { return forward(*m.as<Module>(), x); },
                   std::move(key));
}

// M(arguments...), built by the ranks of its stage. To count its parameters, every rank builds it once and drops it.
// The values of its parameters depend only on the engine's seed and the layer's place in the chain.
template <class M, class... Arguments>
LayerSpec layer(Arguments... arguments) {
  return tied_layer<M>(
      "", [](auto& module, const at::Tensor& x) { return module.forward(x); }, arguments...);
}

// The mean loss of one micro batch, a scalar. The last stage calls it.
using PipelineLoss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

struct PipelineModule {
  // `num_stages`: 0 means the configuration's pipeline.stages, which is needed if all three batch sizes are configured.
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
  // segments. pipeline.activation_checkpoint_interval turns it on, too.
  PipelineEngine(std::unique_ptr<LayerChain> chain, World& world, const Json& config, bool activation_checkpointing);
  ~PipelineEngine() override;
  void backward(const at::Tensor& loss) = delete;
  void step() = delete;

  // The next micro batch of this rank's share: the model's input and the loss's target, each [samples, ...]. It is
  // called once for each micro batch if mpu().should_build_data_loader. Ranks of one pipeline must get the same micro
  // batches.
  using MicroBatches = std::function<std::vector<at::Tensor>()>;

  // One optimizer step over gradient_accumulation_steps micro batches. Returns the mean loss over them and the
  // data-parallel ranks, which is equal on every rank.
  double train_batch(const MicroBatches& next);
  // The mean loss over the same number of micro batches, without training.
  double eval_batch(const MicroBatches& next);
  // Takes the micro batches from an object with next(), such as a BatchIterator.
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
  int stage() const;  // of this rank, counted from 0

 private:
  class Pipeline;
  PipelineEngine(std::unique_ptr<Pipeline> pipeline, World& world, const Json& config);
  std::unique_ptr<Pipeline> pipeline_;
};

// Collective. `config`: a DeepSpeed configuration. Errors: dsat::Error that names the key.
std::unique_ptr<PipelineEngine> initialize(PipelineModule module, World& world, Json config);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PIPELINE_H_
