// Trains a chain of layers as a pipeline: this rank's stage, its neighbours, its data-parallel group.
//
// Threading: one rank, one thread. Construction and all calls are collective over all ranks. Errors: PeerLost;
// dsat::Error; whatever LibTorch throws.
#ifndef DSAT_TRAINER_PIPELINE_PIPELINE_RUNNER_H_
#define DSAT_TRAINER_PIPELINE_PIPELINE_RUNNER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "dsat/trainer/mpu.h"
#include "layout/pipeline_grid.h"
#include "layout/pipeline_schedule.h"
#include "measure/tuning_run.h"
#include "model/layer_chain.h"
#include "pipeline/pipeline_link.h"
#include "pipeline/pipeline_stage.h"
#include "pipeline/tied_parameters.h"

namespace dsat::trainer {

// The next micro batch of this rank's pipeline. Called once a micro batch by the first stage and by the last, which
// must get the same ones.
using NextBatch = std::function<Batch()>;

class PipelineRunner {
 public:
  // `settings.pipeline` says how many stages there are and how the chain is cut. Borrows the first three.
  PipelineRunner(const LayerChain& chain, const Settings& settings, Comm& world, uint64_t seed,
                 bool activation_checkpointing, at::Device device = at::kCPU);

  // One optimizer step. The mean loss over its micro batches and the data-parallel ranks, on every rank.
  double train_batch(const NextBatch& next);
  // The mean loss, without training.
  double eval_batch(const NextBatch& next);
  // Forwards of as many micro batches as a stage holds at once in training; `held` is called while they are.
  void hold_forwards(const NextBatch& next, const std::function<void()>& held);

  // Of the last train_batch() on this rank, waiting for its neighbours included.
  const StepTimes& times() const { return times_; }
  const PipelineGrid& grid() const { return grid_; }
  int stage() const { return grid_.stage_of(world_.rank()); }
  bool is_first() const { return stage() == 0; }
  bool is_last() const { return stage() == grid_.num_stages() - 1; }
  ModelParallelUnit unit() const;
  size_t recomputed_segments() const { return recomputed_; }  // of this stage
  ZeroEngine& engine() { return stage_->engine(); }
  void set_training(bool on) { stage_->set_training(on); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Links {
    Links(Comm& world, int previous, int next, at::Device device);
    PipelineReceiver activations_in, gradients_in;
    PipelineSender activations_out, gradients_out;
  };

  StagePlan plan_of_stage(const LayerChain& chain, uint64_t seed, bool activation_checkpointing) const;
  Links make_links() const;
  void run_training(const NextBatch& next);
  void execute(const PipelineInstruction& instruction, const NextBatch& next);
  void forward(int64_t micro_batch, const NextBatch& next);
  Batch batch_for(const NextBatch& next) const;
  double mean_loss(int64_t micro_batches);
  double microseconds_since(Clock::time_point start) const;
  double squared_norm(const at::Tensor& gradient_shard);

  const Settings& settings_;
  Comm& world_;
  at::Device device_;
  PipelineGrid grid_;
  Segments stages_;
  size_t recomputed_ = 0;
  std::unique_ptr<Comm> data_parallel_;
  std::unique_ptr<PipelineStage> stage_;
  std::unique_ptr<TiedParameters> tied_;
  Links training_, evaluation_;  // shapes differ

  double loss_sum_ = 0;
  // On their way between a link and a forward or backward.
  at::Tensor activation_in_, activation_out_, gradient_in_, gradient_out_;
  StepTimes times_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PIPELINE_PIPELINE_RUNNER_H_
