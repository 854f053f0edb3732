#include <ATen/Context.h>

#include <algorithm>
#include <utility>

#include "dsat/trainer/pipeline.h"
#include "layer_chain.h"
#include "pipeline_runner.h"
#include "random.h"
#include "settings.h"
#include "tuning_run.h"

namespace dsat::trainer {
namespace {

ModelInfo info_of(const LayerChain& chain, const PipelineRunner& runner) {
  ModelInfo info;
  info.num_params = chain.num_params();
  for (const ChainLayer& layer : chain.layers()) {
    info.largest_layer_params = std::max(info.largest_layer_params, layer.num_params);
  }
  info.activation_checkpoints = runner.recomputed_segments();
  return info;
}

Batch batch_of(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 2) return {tensors[0], tensors[1]};
  throw Error("a micro batch of a pipeline is an input and a target; this one has " + std::to_string(tensors.size()) +
              " tensors");
}

NextBatch checked(const PipelineEngine::MicroBatches& next) {
  return [&next] { return batch_of(next()); };
}

}  // namespace

class PipelineEngine::Impl {
 public:
  Impl(std::unique_ptr<LayerChain> own_chain, World& world, const Json& config, bool activation_checkpointing)
      : chain(std::move(own_chain)),
        settings(read_settings(config, world.size(), world.fp16_as_bf16()).settings),
        runner(*chain, settings, world.comm(), world.seed(), activation_checkpointing),
        tuning(world, settings, info_of(*chain, runner)) {
    // Ranks draw numbers of their own from here on: dropout's, say.
    at::manual_seed(RandomStream(world.seed(), ~static_cast<uint64_t>(world.rank())).bits(0));
  }

  std::unique_ptr<LayerChain> chain;
  Settings settings;
  PipelineRunner runner;
  TuningRun tuning;
  int64_t global_steps = 0;
};

PipelineEngine::PipelineEngine(std::unique_ptr<LayerChain> chain, World& world, const Json& config,
                               bool activation_checkpointing)
    : impl_(std::make_unique<Impl>(std::move(chain), world, config, activation_checkpointing)) {}
PipelineEngine::~PipelineEngine() = default;

double PipelineEngine::train_batch(const MicroBatches& next) {
  Impl& i = *impl_;
  if (i.settings.tuning.enabled && i.settings.tuning.model_info) {
    i.tuning.forward_begins();
    i.runner.hold_forwards(checked(next), [&] { i.tuning.forward_ended(); });
  }
  i.tuning.whole_step_begins();
  const double loss = i.runner.train_batch(checked(next));
  ++i.global_steps;
  i.tuning.whole_step_ended(i.runner.times(), loss, i.runner.engine().optimizer().skipped_steps());
  return loss;
}

double PipelineEngine::eval_batch(const MicroBatches& next) { return impl_->runner.eval_batch(checked(next)); }

ModelParallelUnit PipelineEngine::unit() const { return impl_->runner.unit(); }
int PipelineEngine::num_stages() const { return impl_->runner.grid().num_stages(); }
int PipelineEngine::stage() const { return impl_->runner.stage(); }
int64_t PipelineEngine::train_batch_size() const { return impl_->settings.batch.train_batch; }
int64_t PipelineEngine::train_micro_batch_size_per_gpu() const { return impl_->settings.batch.micro_batch; }
int64_t PipelineEngine::gradient_accumulation_steps() const { return impl_->settings.batch.accumulation; }
int64_t PipelineEngine::global_steps() const { return impl_->global_steps; }
int64_t PipelineEngine::num_params() const { return impl_->chain->num_params(); }
int PipelineEngine::zero_optimization_stage() const { return impl_->settings.stage; }
double PipelineEngine::get_lr() const { return impl_->runner.engine().optimizer().learning_rate(); }

std::unique_ptr<PipelineEngine> initialize(PipelineModule module, World& world, Json config) {
  if (module.num_stages != 0) set_pipeline_stages(config, module.num_stages, "num_stages");
  if (module.partition == PartitionMethod::uniform) config["pipeline"]["partition"] = "uniform";
  return std::make_unique<PipelineEngine>(chain_of(std::move(module), world.seed()), world, config,
                                          /*activation_checkpointing=*/false);
}

}  // namespace dsat::trainer
