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

#include <memory>
#include <string>
#include <vector>

#include "comm/comm_thread.h"
#include "layout/layout.h"
#include "zero/gradients.h"
#include "zero/model_parts.h"
#include "zero/parameters.h"
#include "zero/save_and_load.h"
#include "zero/sharded_optimizer.h"
#include "zero/zero_context.h"

namespace dsat::trainer {

class ZeroEngine {
 public:
  // `world`: the ranks that share this model; the engine splits a group of its own off it. `squared_norm`: as
  // ShardedOptimizer has it.
  ZeroEngine(const ModelParts& parts, const Settings& settings, Comm& world, at::Device device, uint64_t seed,
             SquaredNorm squared_norm = {});

  void begin_step();
  void begin_micro_step() { parameters_->begin_micro_step(); }
  // Throws if the parameters that forward has used were not all there.
  void end_forward() { parameters_->check(); }
  // `gradient`: that of the loss itself, without the loss scale. `is_last`: the optimizer step ends with this micro
  // step; gradients are then summed over the ranks.
  void backward(const at::Tensor& loss, double gradient, bool is_last);
  // For a part of a model, at stages 0 and 1: backward passes from any output, and after all of them, once in an
  // optimizer step, the sum over the ranks that backward() makes with `is_last`.
  void backward_from(const at::Tensor& output, const at::Tensor& gradient);
  void sum_gradients();
  void step();
  // Ends the step without an update: gradients are dropped.
  void abandon_step();
  // Around a forward that no step follows.
  void begin_evaluation() { parameters_->begin_step(); }
  void end_evaluation() { parameters_->end_step(); }

  // Between steps; see save_and_load.h.
  void save(const std::string& dir, const std::string& tag, const Json& client_state, const CheckpointScope& scope);
  Json load(const std::string& dir, const std::string& tag, const CheckpointScope& scope);

  const Layout& layout() const { return layout_; }
  const Partition& partition() const { return partition_; }
  // The model's tensors by group. At stages 0 and 1 they have their gradients between backward and step.
  const std::vector<Tensors>& parameters() const { return parameters_->groups(); }
  at::ScalarType dtype() const { return context_.dtype; }
  ShardedOptimizer& optimizer() { return *optimizer_; }

 private:
  Settings settings_;
  std::shared_ptr<Comm> comm_;
  Layout layout_;
  Partition partition_;
  CommThread comm_thread_;
  ZeroContext context_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
  std::vector<UntrainedTensor> untrained_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_ZERO_ENGINE_H_
