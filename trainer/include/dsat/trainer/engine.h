// Trains a module with ZeRO stage 0, 1, 2 or 3 as a DeepSpeed configuration says.
//
//   auto engine = initialize(std::make_shared<Net>(), world, world.config());
//   for (...) {
//     at::Tensor loss = torch::nll_loss(engine->forward(input), target);  // one micro batch
//     engine->backward(loss);
//     engine->step();                                                     // updates at the accumulation boundary
//   }
//
// The module keeps its own forward. Its trainable parameters become views of the engine's flat arrays, with the values
// of rank 0. With bf16, parameters and buffers have that type, and the module's inputs must have it, too. At stage 3 a
// parameter has data only while an operation reads it. Parameters that need no gradient are not partitioned.
//
// Threading: one rank, one thread. Construction, forward, backward and step are collective: every rank makes the same
// calls in the same order. Ownership: an engine shares its module and borrows the World. Errors: dsat::Error in one
// line (configuration, order of the calls), PeerLost, exceptions of LibTorch (out of memory); TuningDone to end a
// trial.
#ifndef DSAT_TRAINER_ENGINE_H_
#define DSAT_TRAINER_ENGINE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dsat/trainer/world.h"

namespace torch::nn {
class Module;
}
namespace torch::jit {
struct Module;
}

namespace dsat::trainer {

// The parts of a model that the engine needs, from a torch::nn::Module (at stage 3 the own parameters of each submodule
// are gathered together) or a torch::jit::Module.
struct ModelParts;
struct ModelInfo;
class TuningRun;
class ZeroEngine;
std::shared_ptr<ModelParts> parts_of(torch::nn::Module& module);
std::shared_ptr<ModelParts> parts_of(torch::jit::Module& module);

// The part of an engine that does not depend on the type of the model.
class ModelEngine {
 public:
  virtual ~ModelEngine();
  ModelEngine(const ModelEngine&) = delete;
  ModelEngine& operator=(const ModelEngine&) = delete;

  // `loss`: the mean of one micro batch, a scalar, which is scaled by 1 / gradient_accumulation_steps. At the boundary
  // the gradients are summed over the ranks.
  void backward(const at::Tensor& loss);
  // Ends a micro step. At the boundary it updates the parameters and drops the gradients.
  void step();

  // Does the present micro step end an optimizer step? Every gradient_accumulation_steps-th one does, unless the
  // boundary is set by hand.
  bool is_gradient_accumulation_boundary() const;
  void set_gradient_accumulation_boundary(bool is_boundary);

  // Sets the module's mode, as torch::nn::Module::train. A forward in evaluation mode starts no micro step.
  void train(bool on = true);
  void eval() { train(false); }

  // Checkpoints, between optimizer steps; collective. Every rank saves its share in DIR/TAG, which appears atomically,
  // and DIR/latest names it. A checkpoint loads with any number of ranks, any ZeRO stage and any number of pipeline
  // stages. `client_state` is taken from rank 0. Errors: dsat::Error; then nothing has changed.
  void save_checkpoint(const std::string& dir, const std::string& tag, const Json& client_state = {});
  // An empty `tag` means the latest. Returns the client state.
  Json load_checkpoint(const std::string& dir, const std::string& tag = "");

  int64_t train_batch_size() const;                // samples per optimizer step of all ranks
  int64_t train_micro_batch_size_per_gpu() const;  // samples per micro step of a rank
  int64_t gradient_accumulation_steps() const;     // micro steps per optimizer step
  int64_t global_steps() const;                    // optimizer steps done
  int64_t micro_steps() const;                     // micro steps done
  int64_t skipped_steps() const;                   // optimizer steps skipped because gradients overflowed
  double get_lr() const;                           // of the next update
  double loss_scale() const;                       // 1 without fp16
  // The norm of the mean gradient at the last step, before clipping; nullopt unless clipping, a loss scale or a tuning
  // trial needed it.
  std::optional<double> get_global_grad_norm() const;
  int64_t num_params() const;  // trainable, without padding
  int zero_optimization_stage() const;
  at::ScalarType dtype() const;  // of parameters and activations: at::kFloat or at::kBFloat16
  const Json& config() const;
  World& world();

 protected:
  ModelEngine(World& world, const Json& config, std::shared_ptr<ModelParts> parts);
  // The engine of one pipeline stage. The derived class trains it with `zero`, which is borrowed. `info` describes the
  // whole model.
  ModelEngine(World& world, const Json& config, ZeroEngine& zero, int stage, int stages, const ModelInfo& info,
              std::function<void(bool)> set_mode);
  TuningRun& tuning();
  // Counts an optimizer step and all its micro steps.
  void count_whole_step();
  void begin_forward();
  void end_forward();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

template <class M>
class Engine : public ModelEngine {
 public:
  Engine(std::shared_ptr<M> module, World& world, const Json& config)
      : ModelEngine(world, config, parts_of(*module)), module_(std::move(module)) {}

  M& module() { return *module_; }

  // The module's own forward on one micro batch; a TorchScript module takes a std::vector<c10::IValue>.
  template <class... A>
  auto forward(A&&... arguments) {
    begin_forward();
    auto output = module_->forward(std::forward<A>(arguments)...);
    end_forward();
    return output;
  }

 private:
  std::shared_ptr<M> module_;
};

// Collective. `config`: a DeepSpeed configuration. Errors: dsat::Error that names the key.
template <class M>
std::unique_ptr<Engine<M>> initialize(std::shared_ptr<M> model, World& world, const Json& config) {
  return std::make_unique<Engine<M>>(std::move(model), world, config);
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ENGINE_H_
