// One rank's part of a pipeline: the layers of a stage and the engine that trains them.
//
// One optimizer step: begin_step(); for each micro batch forward() and later backward(), in any order that has the
// forward first; then step(). Several micro batches may be between the two; what each keeps is freed by its backward.
// Ownership: owns the engine and what micro batches keep. Threading: the compute thread; construction and step() are
// collective over the stage's data-parallel group.
// Errors: PeerLost; whatever LibTorch or a user's layer throws.
#ifndef DSAT_TRAINER_PIPELINE_PIPELINE_STAGE_H_
#define DSAT_TRAINER_PIPELINE_PIPELINE_STAGE_H_

#include <map>

#include "model/layer_chain.h"
#include "zero/zero_engine.h"

namespace dsat::trainer {

struct StagePlan {
  Segment layers;  // of the chain
  bool is_first = true;
  bool is_last = true;
  Segments recomputed{};  // what backward computes once more, in this stage's layers counted from 0; none: all is kept
  uint64_t seed = 0;
  at::Device device = at::kCPU;
};

class PipelineStage {
 public:
  // Borrows chain, settings and group. `squared_norm`: over the whole model, as ShardedOptimizer has it.
  PipelineStage(const LayerChain& chain, const Settings& settings, Comm& data_parallel, StagePlan plan,
                SquaredNorm squared_norm);

  void begin_step() { engine_.begin_step(); }
  // Returns the output, or in the last stage the loss. `input`: the model's input in the first stage, else the output
  // of the stage before. `target`: only the last stage reads it.
  at::Tensor forward(int64_t micro_batch, at::Tensor input, const at::Tensor& target);
  // `gradient`: that of the output; the last stage does not read it. Returns the input's gradient, in the first stage
  // an undefined tensor.
  at::Tensor backward(int64_t micro_batch, const at::Tensor& gradient);
  // Sums the gradients over the data-parallel group and updates the parameters.
  void step();
  // Ends the step without an update: gradients and what micro batches still keep are dropped.
  void abandon_step();
  // Forward only, nothing is kept.
  at::Tensor evaluate(at::Tensor input, const at::Tensor& target) const;

  // Frees what a micro batch keeps, without its backward.
  void drop(int64_t micro_batch) { held_.erase(micro_batch); }
  void set_training(bool on) { layers_.parts.train(on); }
  ZeroEngine& engine() { return engine_; }
  const ZeroEngine& engine() const { return engine_; }

 private:
  // What a micro batch needs between its forward and its backward. In the last stage the output is the loss.
  struct HeldMicroBatch {
    at::Tensor input, output;
  };

  at::Tensor run(at::Tensor x) const;
  at::Tensor run(const Segment& segment, at::Tensor x) const;
  at::Tensor loss_gradient(const at::Tensor& loss);

  const LayerChain& chain_;
  const Settings& settings_;
  StagePlan plan_;
  StageLayers layers_;
  ZeroEngine engine_;
  std::map<int64_t, HeldMicroBatch> held_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PIPELINE_PIPELINE_STAGE_H_
