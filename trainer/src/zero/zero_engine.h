// ZeRO stage 0, 1, 2 or 3 under a model that knows nothing of it (Rajbhandari et al., SC 2020: what each stage shards
// is in parameters.h, gradients.h and sharded_optimizer.h).
//
// One optimizer step: begin_step(), then for each micro step begin_micro_step(), the model's forward, backward(), then
// step(). Between steps the rank holds model states only: parameters, gradients and optimizer states, each whole or its
// shard, all allocated in the constructor; what a stage needs beyond them is taken in begin_step() and given back at
// the end.
// Ownership: owns its groups, communication thread and states; the model's tensors become views of them, so the model
// may not be used after the engine. Threading: the compute thread makes all calls; all are collective. Errors:
// dsat::Error, PeerLost; whatever LibTorch throws (out of memory).
#ifndef DSAT_TRAINER_ZERO_ZERO_ENGINE_H_
#define DSAT_TRAINER_ZERO_ZERO_ENGINE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autograd/edited_parameters.h"
#include "comm/comm_thread.h"
#include "layout/layout.h"
#include "weights/weight_spec.h"
#include "zero/gradients.h"
#include "zero/model_parts.h"
#include "zero/parameters.h"
#include "zero/save_and_load.h"
#include "zero/sharded_optimizer.h"
#include "zero/zero_context.h"

namespace dsat::trainer {

class ZeroEngine {
 public:
  // `world`: the ranks that share this model, borrowed; the engine splits a group of its own off it. `squared_norm`: as
  // ShardedOptimizer has it.
  ZeroEngine(const ModelParts& parts, const Settings& settings, Comm& world, at::Device device, uint64_t seed,
             SquaredNorm squared_norm = {});

  // Throws dsat::Error if a parameter was changed since the last step, as do the begin of an evaluation and step().
  void begin_step();
  void begin_micro_step() {
    edited_.check();
    parameters_->begin_micro_step();
  }
  // Throws if the parameters that forward has used were not all there.
  void end_forward() { parameters_->check(); }
  // `gradient`: that of the loss itself, without the loss scale. `is_last`: the optimizer step ends with this micro
  // step; gradients are then summed over the ranks.
  void backward(const at::Tensor& loss, double gradient, bool is_last) {
    run_backward(loss, gradient, {{this, is_last}});
  }
  // One pass through a loss of several engines, which have the same loss scale; each with its `is_last`.
  struct Part {
    ZeroEngine* engine;
    bool is_last;
  };
  static void run_backward(const at::Tensor& loss, double gradient, const std::vector<Part>& parts);
  // For a part of a model, at stages 0 and 1: backward passes from any output, and after all of them, once in an
  // optimizer step, the sum over the ranks that backward() makes with `is_last`.
  void backward_from(const at::Tensor& output, const at::Tensor& gradient);
  void sum_gradients();
  void step();
  // Ends the step without an update: gradients are dropped.
  void abandon_step();
  // Around a forward that no step follows.
  void begin_evaluation() {
    edited_.check();
    parameters_->begin_step();
  }
  void end_evaluation() { parameters_->end_step(); }

  // Between steps, collective: runs `change` without a graph while the tensors in `which` are whole (none: all are).
  // Afterwards rank 0's values are every rank's, and those of the master copy.
  void edit(const Tensors& which, const std::function<void()>& change);

  // Between steps; see save_and_load.h.
  void save(const std::string& dir, const std::string& tag, const Json& client_state, const CheckpointScope& scope);
  Json load(const std::string& dir, const std::string& tag, const CheckpointScope& scope);

  // Weights as other programs know them; collective, between steps. Parameters are those of the fp32 master copy, and
  // buffers rank 0's, in fp32 where they are floating-point numbers. Each tensor is whole for a moment only.
  std::vector<WeightSpec> weight_specs() const;
  // Calls `take` on rank 0, in the order of weight_specs(), with tensors on the host.
  void collect_weights(const std::function<void(const at::Tensor& values)>& take);
  // `read` is called on rank 0, in the same order, and returns the tensor on the host, of any type. The optimizer's
  // states stay.
  void spread_weights(const std::function<at::Tensor(const WeightSpec& spec)>& read);
  // The first buffer whose values differ between ranks; empty: none. Collective.
  std::string differing_buffer();

  const Layout& layout() const { return layout_; }
  const Partition& partition() const { return partition_; }
  // The model's tensors by group. At stages 0 and 1 they have their gradients between backward and step.
  const std::vector<Tensors>& parameters() const { return parameters_->groups(); }
  at::ScalarType dtype() const { return context_.dtype; }
  ShardedOptimizer& optimizer() { return *optimizer_; }

 private:
  std::vector<size_t> groups_of(const Tensors& which) const;
  CheckpointContents contents(const std::vector<at::Tensor>& forms, const CheckpointScope& scope);

  Settings settings_;
  Comm& callers_;
  std::shared_ptr<Comm> comm_;
  Layout layout_;
  Partition partition_;
  CommThread comm_thread_;
  ZeroContext context_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
  std::vector<UntrainedTensor> untrained_;
  std::map<std::string, std::string> aliases_;  // ModelParts::aliases
  EditedParameters edited_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_ZERO_ENGINE_H_
