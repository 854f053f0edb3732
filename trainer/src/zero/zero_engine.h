// ZeRO stage 0, 1, 2 or 3 under a model that knows nothing of it.
//
// One optimizer step: begin_step(), then for each micro step begin_micro_step(), the model's forward, backward(), then
// step(). Between steps the rank holds model states only: parameters, gradients and optimizer states, each whole or its
// shard, all allocated in the constructor; what a stage needs beyond them is taken in begin_step() and given back at
// the end. Threading: one rank, one thread, besides its communication thread. All calls are collective. Errors:
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
  // `world`: of the ranks that share this model; the engine makes a group of its own out of it.
  ZeroEngine(const ModelParts& parts, const Settings& settings, Comm& world, at::Device device, uint64_t seed,
             SquaredNorm squared_norm = {});

  void begin_step();
  void begin_micro_step() { parameters_->begin_micro_step(); }
  // Throws if the parameters that forward has used were not all there.
  void end_forward() { parameters_->check(); }
  // `gradient`: of the loss itself, apart from the loss scale. `is_last`: of the optimizer step; gradients are then
  // summed over the ranks.
  void backward(const at::Tensor& loss, double gradient, bool is_last);
  // For a part of a model, at stages 0 and 1: backward passes from any output, and afterwards, once in an optimizer
  // step, what the last of them would do.
  void backward_from(const at::Tensor& output, const at::Tensor& gradient);
  void sum_gradients();
  void step();
  // Ends the step without an update: gradients are dropped.
  void abandon_step();
  // Around a forward that no step follows.
  void begin_evaluation() { parameters_->begin_step(); }
  void end_evaluation() { parameters_->end_step(); }

  // Between steps; see checkpoint_files.h.
  void save(const std::string& dir, const std::string& tag, const Json& client_state, const CheckpointScope& scope);
  Json load(const std::string& dir, const std::string& tag, const CheckpointScope& scope);

  const Layout& layout() const { return layout_; }
  const Partition& partition() const { return partition_; }
  // The model's tensors by group, with their gradients in place at stages 0 and 1.
  const std::vector<Tensors>& parameters() const { return parameters_->layers(); }
  at::ScalarType dtype() const { return context_.dtype; }
  ShardedOptimizer& optimizer() { return *optimizer_; }

 private:
  Settings settings_;
  std::shared_ptr<Comm> comm_;
  Layout layout_;
  Partition partition_;
  Lane lane_;
  ZeroContext context_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<ShardedOptimizer> optimizer_;
  std::vector<UntrainedTensor> others_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_ZERO_ENGINE_H_
