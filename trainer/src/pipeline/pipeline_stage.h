// One rank's part of a pipeline: the layers of a stage and the engine that trains them.
//
// One optimizer step: begin_step(); for each micro batch forward() and later backward(), in any order that has the
// forward first; then step(). Several micro batches may be between the two; what each keeps is freed by its backward.
// Threading: one rank, one thread; construction and step() are collective over the stage's data-parallel group.
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
  Segments recomputed{};  // of this stage's layers, from 0, that are computed once more in backward; none: all is kept
  uint64_t seed = 0;
  at::Device device = at::kCPU;
};

class PipelineStage {
 public:
  // Borrows the first three.
  PipelineStage(const LayerChain& chain, const Settings& settings, Comm& data_parallel, StagePlan plan,
                SquaredNorm squared_norm);

  void begin_step() { engine_.begin_step(); }
  // The output, or in the last stage the loss. `input`: of the model in the first stage, else what the stage before has
  // put out. `target`: only the last stage looks at it.
  at::Tensor forward(int64_t micro_batch, at::Tensor input, const at::Tensor& target);
  // `gradient`: of the output; not looked at in the last stage. The input's gradient; none in the first stage.
  at::Tensor backward(int64_t micro_batch, const at::Tensor& gradient);
  // Sums the gradients over the data-parallel group and updates the parameters.
  void step();
  // Ends the step without an update: gradients and what micro batches still keep are dropped.
  void abandon_step();
  // Forward only, nothing is kept.
  at::Tensor evaluate(at::Tensor input, const at::Tensor& target) const;

  void drop(int64_t micro_batch) { kept_.erase(micro_batch); }
  void set_training(bool on) { layers_.parts.train(on); }
  ZeroEngine& engine() { return engine_; }
  const ZeroEngine& engine() const { return engine_; }

 private:
  // What a micro batch needs between its forward and its backward. The output is the loss in the last stage.
  struct Kept {
    at::Tensor input, output;
  };

  at::Tensor run(at::Tensor x) const;
  at::Tensor run(const Segment& segment, at::Tensor x) const;
  at::Tensor start_gradient(const at::Tensor& loss);

  const LayerChain& chain_;
  const Settings& settings_;
  StagePlan plan_;
  StageLayers layers_;
  ZeroEngine engine_;
  std::map<int64_t, Kept> kept_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PIPELINE_PIPELINE_STAGE_H_
