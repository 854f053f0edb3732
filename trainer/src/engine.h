// Trains a model with ZeRO stage 0, 1, 2 or 3 as the settings say.
//
// One optimizer step: begin_step(), then for each micro step forward() and backward(), then step(). Between steps the
// rank holds model states only: parameters, gradients and optimizer states, each whole or its shard, all allocated in
// the constructor; what a stage needs beyond them is taken in begin_step() and given back in step().
// Threading: one rank, one thread. All calls are collective. Errors: PeerLost; whatever LibTorch throws (out of
// memory).
#ifndef DSAT_TRAINER_ENGINE_H_
#define DSAT_TRAINER_ENGINE_H_

#include <memory>

#include "gradients.h"
#include "layout.h"
#include "model.h"
#include "parameters.h"
#include "segments.h"
#include "sharded_optimizer.h"
#include "zero_context.h"

namespace dsat::trainer {

class Engine {
 public:
  // Borrows the first three. `segments`: of the model's layers that are recomputed in backward; none: every activation
  // is kept.
  Engine(const Model& model, const Settings& settings, Comm& comm, uint64_t seed, Segments segments = {});

  void begin_step();
  // The loss of one micro batch on this rank.
  at::Tensor forward(const Batch& batch);
  // `is_last`: of the optimizer step; gradients are then summed over the ranks.
  void backward(const at::Tensor& loss, bool is_last);
  void step();
  // Ends the step without an update: gradients are dropped.
  void abandon_step();

  int64_t skipped_steps() const { return optimizer_.skipped_steps(); }
  const Layout& layout() const { return layout_; }

 private:
  at::Tensor run(const Segment& segment, at::Tensor x);
  at::Tensor forward_keeping_inputs(at::Tensor x);
  void backward_recomputing();

  const Model& model_;
  const Settings& settings_;
  Comm& comm_;
  Layout layout_;
  Partition partition_;
  ZeroContext context_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Gradients> gradients_;
  ShardedOptimizer optimizer_;

  // Activation checkpointing, between forward and backward of one micro batch.
  Segments segments_;
  Tensors inputs_;     // of each segment
  at::Tensor output_;  // of the last one, cut off from what computed it
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ENGINE_H_
