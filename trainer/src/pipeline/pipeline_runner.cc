// Carries out the pipeline schedule's instructions: receive, forward, send, and the same backwards. Around the schedule
// it sums what tied layers and data-parallel ranks share, and updates the parameters.
#include "pipeline/pipeline_runner.h"

#include <algorithm>
#include <utility>

#include "device/device.h"
#include "layout/pipeline_partition.h"
#include "zero/shard_update.h"

namespace dsat::trainer {
namespace {

// The first layer of each stage and the one behind its last, by the settings' way to cut.
Segments stages_of(const LayerChain& chain, const PipelineSettings& settings) {
  std::vector<int64_t> sizes;
  for (const ChainLayer& layer : chain.layers()) sizes.push_back(layer.num_params);
  return pipeline_stages(sizes, settings.stages, settings.partition);
}

// A step's time is split into forward and backward as the tuner reads it: transfers count with the pass they serve.
bool is_forward(PipelineAction action) {
  return action == PipelineAction::receive_activation || action == PipelineAction::forward ||
         action == PipelineAction::send_activation;
}

}  // namespace

PipelineRunner::Links::Links(Comm& world, int previous, int next, at::Device device)
    : activations_in(world, previous, device),
      gradients_in(world, next, device),
      activations_out(world, next),
      gradients_out(world, previous) {}

// A neighbour stage is data_parallel_size ranks away. The first stage has no previous one and the last no next one:
// their links are made with a wrong rank, but no schedule uses them.
PipelineRunner::Links PipelineRunner::make_links() const {
  const int step = grid_.data_parallel_size();
  return Links(world_, world_.rank() - step, world_.rank() + step, device_);
}

// In a tuning trial, where somebody reads the times, what was started on a device has ended before the clock is read.
double PipelineRunner::microseconds_since(Clock::time_point start) const {
  if (settings_.tuning.enabled) synchronize(device_);
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

PipelineRunner::PipelineRunner(const LayerChain& chain, const Settings& settings, Comm& world, uint64_t seed,
                               bool activation_checkpointing, at::Device device)
    : settings_(settings),
      world_(world),
      device_(device),
      grid_(world.size(), settings.pipeline.stages),
      stages_(stages_of(chain, settings.pipeline)),
      data_parallel_(world.split(grid_.data_parallel_group(stage()))),
      training_(make_links()),
      evaluation_(make_links()) {
  StagePlan plan = plan_of_stage(chain, seed, activation_checkpointing);
  recomputed_ = plan.recomputed.size();
  stage_ = std::make_unique<PipelineStage>(chain, settings, *data_parallel_, std::move(plan),
                                           [this](const at::Tensor& gradient) { return squared_norm(gradient); });
  tied_ = std::make_unique<TiedParameters>(chain, stages_, grid_, world, stage_->engine());
}

StagePlan PipelineRunner::plan_of_stage(const LayerChain& chain, uint64_t seed, bool activation_checkpointing) const {
  StagePlan plan;
  plan.layers = stages_[static_cast<size_t>(stage())];
  plan.is_first = is_first();
  plan.is_last = is_last();
  plan.seed = seed;
  plan.device = device_;
  const size_t layers = plan.layers.end - plan.layers.begin;
  if (const int64_t interval = settings_.pipeline.checkpoint_interval; interval > 0) {
    plan.recomputed = segments_of_interval(layers, interval);
  } else if (activation_checkpointing) {
    // The configuration counts the segments of the whole model; this stage gets its share by its number of layers.
    const int64_t all = settings_.number_checkpoints;
    const auto share = all * static_cast<int64_t>(layers) / static_cast<int64_t>(chain.layers().size());
    plan.recomputed = segments_of(layers, all == 0 ? 0 : std::max<int64_t>(1, share));
  }
  return plan;
}

double PipelineRunner::train_batch(const NextBatch& next) {
  run_training(next);
  const Clock::time_point start = Clock::now();
  // First over the stages, then (in step) over the data-parallel group: both copies then get the same sum.
  tied_->sum_gradients();
  stage_->step();
  times_.step_us = microseconds_since(start);
  return mean_loss(settings_.batch.accumulation);
}

void PipelineRunner::run_training(const NextBatch& next) {
  times_ = {};
  loss_sum_ = 0;
  stage_->set_training(true);
  stage_->begin_step();
  for (const PipelineInstruction& one : training_schedule(stage(), grid_.num_stages(), settings_.batch.accumulation)) {
    const Clock::time_point start = Clock::now();
    execute(one, next);
    (is_forward(one.action) ? times_.forward_us : times_.backward_us) += microseconds_since(start);
  }
}

// std::exchange empties a place as soon as its tensor is used: what nothing needs any more must not stay in memory.
void PipelineRunner::execute(const PipelineInstruction& instruction, const NextBatch& next) {
  switch (instruction.action) {
    case PipelineAction::receive_activation:
      activation_in_ = training_.activations_in.receive();
      break;
    case PipelineAction::forward:
      forward(instruction.micro_batch, next);
      break;
    case PipelineAction::send_activation:
      training_.activations_out.send(std::exchange(activation_out_, {}));
      break;
    case PipelineAction::receive_gradient:
      gradient_in_ = training_.gradients_in.receive();
      break;
    case PipelineAction::backward:
      gradient_out_ = stage_->backward(instruction.micro_batch, std::exchange(gradient_in_, {}));
      break;
    case PipelineAction::send_gradient:
      training_.gradients_out.send(std::exchange(gradient_out_, {}));
      break;
  }
}

// The first stage needs the inputs, the last one the targets.
Batch PipelineRunner::batch_for(const NextBatch& next) const {
  Batch batch;
  if (is_first() || is_last()) batch = next();
  return batch;
}

void PipelineRunner::forward(int64_t micro_batch, const NextBatch& next) {
  Batch batch = batch_for(next);
  if (!is_first()) batch.input = std::exchange(activation_in_, {});
  at::Tensor result = stage_->forward(micro_batch, std::exchange(batch.input, {}), batch.target);
  if (is_last()) {
    loss_sum_ += result.item<double>();
  } else {
    activation_out_ = std::move(result);
  }
}

// No schedule is needed: forwards flow through the stages one after the other, and nothing is kept for a backward.
double PipelineRunner::eval_batch(const NextBatch& next) {
  loss_sum_ = 0;
  stage_->set_training(false);
  const int64_t micro_batches = settings_.batch.accumulation;
  for (int64_t i = 0; i < micro_batches; ++i) {
    Batch batch = batch_for(next);
    if (!is_first()) batch.input = evaluation_.activations_in.receive();
    const at::Tensor result = stage_->evaluate(std::move(batch.input), batch.target);
    if (is_last()) {
      loss_sum_ += result.item<double>();
    } else {
      evaluation_.activations_out.send(result);
    }
  }
  return mean_loss(micro_batches);
}

void PipelineRunner::hold_forwards(const NextBatch& next, const std::function<void()>& held) {
  const int64_t micro_batches = std::min<int64_t>(grid_.num_stages(), settings_.batch.accumulation);
  stage_->set_training(true);
  stage_->begin_step();
  const int64_t most = std::min<int64_t>(grid_.num_stages() - stage(), micro_batches);
  for (const PipelineInstruction& one : evaluation_schedule(stage(), grid_.num_stages(), micro_batches)) {
    // In training a backward would have freed it by now (1F1B): stage s holds at most stages - s micro batches.
    if (one.action == PipelineAction::forward) stage_->drop(one.micro_batch - most);
    execute(one, next);
  }
  held();
  stage_->abandon_step();
}

// Only the last stage has losses; the other ranks add 0.
double PipelineRunner::mean_loss(int64_t micro_batches) {
  const double sum = sum_over_ranks(world_, {is_last() ? loss_sum_ : 0})[0];
  return sum / static_cast<double>(micro_batches * grid_.data_parallel_size());
}

// Over the whole model: the sum over stages and shards, with tied parameters counted once. At ZeRO stage 0 every rank
// of a data-parallel group holds the whole gradient of its stage, which is then counted once for each of them.
double PipelineRunner::squared_norm(const at::Tensor& gradient_shard) {
  double squares = sum_of_squares(gradient_shard);
  squares -= tied_->squares_counted_elsewhere(gradient_shard, data_parallel_->rank());
  const double all = sum_over_ranks(world_, {squares})[0];
  return settings_.stage == 0 ? all / grid_.data_parallel_size() : all;
}

ModelParallelUnit PipelineRunner::unit() const {
  return {grid_.data_parallel_rank_of(world_.rank()), grid_.data_parallel_size(), is_last(), is_first() || is_last()};
}

}  // namespace dsat::trainer
