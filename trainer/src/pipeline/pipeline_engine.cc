// PipelineEngine (dsat/trainer/pipeline.h): the public engine of a pipeline on top of PipelineRunner. Checkpoints and
// step counts come from ModelEngine, which is given the ZeroEngine of this rank's stage.
#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "dsat/trainer/pipeline.h"
#include "measure/tuning_run.h"
#include "model/layer_chain.h"
#include "pipeline/pipeline_runner.h"
#include "settings/settings.h"

namespace dsat::trainer {
namespace {

// What a result file says of the model; the largest layer decides what stage 3 would gather.
ModelInfo info_of(const LayerChain& chain, const PipelineRunner& runner) {
  ModelInfo info;
  const ChainLayer total = chain.total();
  info.num_params = total.num_params;
  info.num_frozen = total.num_frozen;
  for (const ChainLayer& layer : chain.layers()) {
    info.largest_layer_params = std::max(info.largest_layer_params, layer.num_params);
  }
  info.recomputed_segments = runner.recomputed_segments();
  return info;
}

Batch batch_of(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 2) return {tensors[0], tensors[1]};
  throw Error(
      fmt::format("a micro batch of a pipeline is an input and a target; this one has {} tensors", tensors.size()));
}

NextBatch checked_batches(const PipelineEngine::MicroBatches& next) {
  return [&next] { return batch_of(next()); };
}

}  // namespace

class PipelineEngine::Pipeline {
 public:
  Pipeline(std::unique_ptr<LayerChain> own_chain, World& world, const Json& config, bool activation_checkpointing)
      : chain(std::move(own_chain)),
        settings(read_settings(config, world.size(), fp16_on(world.device().is_cpu(), world.fp16_as_bf16())).settings),
        runner(*chain, settings, world.comm(), world.seed(), activation_checkpointing, world.device()) {
    // From here on each rank draws numbers of its own, for dropout for example; building the layers has seeded all
    // alike.
    at::manual_seed(RandomStream(world.seed(), ~static_cast<uint64_t>(world.rank())).bits(0));
  }

  std::unique_ptr<LayerChain> chain;
  Settings settings;
  PipelineRunner runner;
};

PipelineEngine::PipelineEngine(std::unique_ptr<LayerChain> chain, World& world, const Json& config,
                               bool activation_checkpointing)
    : PipelineEngine(std::make_unique<Pipeline>(std::move(chain), world, config, activation_checkpointing), world,
                     config) {}
// In two steps, because the base class needs what the pipeline has made.
PipelineEngine::PipelineEngine(std::unique_ptr<Pipeline> pipeline, World& world, const Json& config)
    : ModelEngine(world, config, pipeline->runner.engine(), pipeline->runner.stage(),
                  pipeline->runner.grid().num_stages(), info_of(*pipeline->chain, pipeline->runner),
                  [runner = &pipeline->runner](bool on) { runner->set_training(on); }),
      pipeline_(std::move(pipeline)) {}
PipelineEngine::~PipelineEngine() = default;

double PipelineEngine::train_batch(const MicroBatches& next) {
  PipelineRunner& runner = pipeline_->runner;
  const TuningSettings& wanted = pipeline_->settings.tuning;
  // A trial for the model's sizes ends after the forwards: it measures the activations that a stage holds at once.
  if (wanted.enabled && wanted.model_info) {
    tuning().forward_begins();
    runner.hold_forwards(checked_batches(next), [&] { tuning().forward_ended(); });
  }
  tuning().whole_step_begins();
  const double loss = runner.train_batch(checked_batches(next));
  count_whole_step();
  tuning().whole_step_ended(runner.times(), loss, skipped_steps(), get_global_grad_norm());
  return loss;
}

double PipelineEngine::eval_batch(const MicroBatches& next) {
  return pipeline_->runner.eval_batch(checked_batches(next));
}

ModelParallelUnit PipelineEngine::mpu() const { return pipeline_->runner.unit(); }
int PipelineEngine::num_stages() const { return pipeline_->runner.grid().num_stages(); }
int PipelineEngine::stage() const { return pipeline_->runner.stage(); }

std::unique_ptr<PipelineEngine> initialize(PipelineModule module, World& world, Json config) {
  if (module.num_stages != 0) set_pipeline_stages(config, module.num_stages, "num_stages");
  if (module.partition == PartitionMethod::uniform) config["pipeline"]["partition"] = "uniform";
  return std::make_unique<PipelineEngine>(chain_of(std::move(module), world.seed()), world, config,
                                          /*activation_checkpointing=*/false);
}

}  // namespace dsat::trainer
