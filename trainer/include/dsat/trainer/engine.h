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
#include <vector>

#include "dsat/trainer/world.h"

namespace torch::nn {
class Module;
}
namespace torch::jit {
struct Module;
}

namespace dsat::trainer {

// Parameters that are updated otherwise than the rest, as an optimizer's parameter group.
struct ParameterGroup {
  std::vector<at::Tensor> parameters;
  std::optional<double> weight_decay;  // none: the optimizer's
  double lr_scale = 1;                 // times the scheduled rate
};

// Those with one dimension or none, biases and the weights of norms: {biases_and_norms(net->parameters()), 0.0} keeps
// the weight decay off them.
std::vector<at::Tensor> biases_and_norms(const std::vector<at::Tensor>& parameters);

// The parts of a model that the engine needs, from a torch::nn::Module (at stage 3 the own parameters of each submodule
// are gathered together) or a torch::jit::Module.
struct ModelParts;
struct ModelInfo;
class TuningRun;
class ZeroEngine;
std::shared_ptr<ModelParts> parts_of(torch::nn::Module& module);
std::shared_ptr<ModelParts> parts_of(torch::jit::Module& module);
// Throws for a tensor that is no trained parameter of the model, or is in two groups.
std::shared_ptr<ModelParts> with_groups(std::shared_ptr<ModelParts> parts, const std::vector<ParameterGroup>& groups);

// The part of an engine that does not depend on the type of the model.
class ModelEngine {
 public:
  virtual ~ModelEngine();
  ModelEngine(const ModelEngine&) = delete;
  ModelEngine& operator=(const ModelEngine&) = delete;

  // `loss`: the mean of one micro batch, a scalar, which is scaled by 1 / gradient_accumulation_steps. At the boundary
  // the gradients are summed over the ranks. Only this engine's parameters get gradients: those of another engine that
  // the loss depends on keep what they have. For one loss that trains several engines there is backward() below.
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

  // Changes parameters by hand; collective, between optimizer steps. While `change` runs, without a graph, the tensors
  // in `which` (none: all of them) are whole at every stage. Afterwards rank 0's values are those of every rank and of
  // the master copy; the optimizer's states stay. A change outside of this is refused at the next call, by name.
  void edit_parameters(const std::function<void()>& change, const std::vector<at::Tensor>& which = {});

  // The weights in fp32 (those of the master copy) with all their names, for other programs; collective, between
  // optimizer steps, and not for pipelines. Buffers are rank 0's, and one line reports where other ranks have others.
  // Rank 0 gets the tensors, on the host; the other ranks get none.
  std::vector<std::pair<std::string, at::Tensor>> full_state_dict();
  // The same as a file, OUT.pt for torch.load or OUT.safetensors, with one tensor at a time in memory.
  void save_weights(const std::string& out);
  // From such a file, or from torch.save(model.state_dict(), FILE); the optimizer's states stay. A tensor that is
  // missing or of another shape is refused; one that the model does not have is named in a warning.
  void load_weights(const std::string& file);

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
  double get_lr() const;                           // of the next update, lr_scale apart
  double loss_scale() const;                       // 1 without fp16
  // The rate from the next update on, in place of the schedule; a checkpoint keeps it. The same on all ranks.
  void set_lr(double lr);
  // A schedule of the program's own: the rate of the update that follows `updates` others. A checkpoint does not keep
  // it. It counts until set_lr(); an empty function brings the configuration's schedule back.
  void set_lr_schedule(std::function<double(int64_t updates)> schedule);
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
  // In a catch block of forward: throws on, with the layer that LibTorch's text does not name.
  [[noreturn]] void forward_failed();

 private:
  friend void backward(const at::Tensor& loss, const std::vector<ModelEngine*>& engines);
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// One backward pass for several engines on one loss, as engine->backward(loss) is for one. They must have the same
// gradient_accumulation_steps and loss scale.
void backward(const at::Tensor& loss, const std::vector<ModelEngine*>& engines);

template <class M>
class Engine : public ModelEngine {
 public:
  Engine(std::shared_ptr<M> module, World& world, const Json& config, const std::vector<ParameterGroup>& groups = {})
      : ModelEngine(world, config, with_groups(parts_of(*module), groups)), module_(std::move(module)) {}

  M& module() { return *module_; }

  // The module's own forward on one micro batch; a TorchScript module takes a std::vector<c10::IValue>.
  template <class... A>
  auto forward(A&&... arguments) {
    begin_forward();
    try {
      auto output = module_->forward(std::forward<A>(arguments)...);
      end_forward();
      return output;
    } catch (...) {
      forward_failed();
    }
  }

 private:
  std::shared_ptr<M> module_;
};

// Collective. `config`: a DeepSpeed configuration. Errors: dsat::Error that names the key.
template <class M>
std::unique_ptr<Engine<M>> initialize(std::shared_ptr<M> model, World& world, const Json& config,
                                      const std::vector<ParameterGroup>& groups = {}) {
  return std::make_unique<Engine<M>>(std::move(model), world, config, groups);
}

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ENGINE_H_
