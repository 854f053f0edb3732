// Trains a chain of layers as a pipeline: this rank's stage, its neighbours, its data-parallel group.
//
// The order of forwards, backwards and transfers is that of pipeline_schedule.h (1F1B, as DeepSpeed's TrainSchedule).
// Ownership: borrows chain, settings and world, owns its stage. Threading: the compute thread. Construction and all
// calls that train or evaluate are collective over all ranks. Errors: PeerLost; dsat::Error; whatever LibTorch throws.
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

// Gives the next micro batch of this rank's pipeline. The first and the last stage call it once a micro batch, and must
// get the same ones: the first uses the input, the last the target.
using NextBatch = std::function<Batch()>;

class PipelineRunner {
 public:
  // `settings.pipeline` says how many stages there are and how the chain is cut.
  PipelineRunner(const LayerChain& chain, const Settings& settings, Comm& world, uint64_t seed,
                 bool activation_checkpointing, at::Device device = at::kCPU);

  // One optimizer step. The mean loss over its micro batches and the data-parallel ranks, on every rank.
  double train_batch(const NextBatch& next);
  // The mean loss, without training.
  double eval_batch(const NextBatch& next);
  // Runs forwards only, until each stage holds the activations of as many micro batches as it does at most in training,
  // and calls `held` at that moment. Nothing is trained.
  void hold_forwards(const NextBatch& next, const std::function<void()>& held);

  // The times of the last train_batch() on this rank, with the waits for its neighbours.
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

  // All transfers of this rank, to and from the stage before and the stage after.
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
  Links training_, evaluation_;  // each link has one shape, and batches of the two may differ

  double loss_sum_ = 0;
  // What a link has received or is about to send: the schedule's instructions leave tensors here for each other.
  at::Tensor activation_in_, activation_out_, gradient_in_, gradient_out_;
  StepTimes times_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_PIPELINE_PIPELINE_RUNNER_H_
