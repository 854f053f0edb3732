// Trains a TorchScript module on the micro batches of its task.
// A module exported from a Sequential can be a pipeline.
#include "program/torchscript_training.h"

#include <ATen/Context.h>

#include <memory>
#include <utility>
#include <vector>

#include "dsat/trainer/engine.h"
#include "dsat/trainer/pipeline.h"
#include "model/script_chain.h"
#include "model/script_module.h"
#include "program/script_task.h"

namespace dsat::trainer {
namespace {

using ScriptEngine = Engine<ScriptModule>;

std::shared_ptr<ScriptModule> module_of(const Options& options, const Settings& settings, World& world) {
  Comm* const shard_among = settings.stage == 3 ? &world.comm() : nullptr;
  auto module = std::make_shared<ScriptModule>(options.torchscript, world.device(), shard_among);
  if (const int64_t interval = settings.pipeline.checkpoint_interval; interval > 0) {
    module->recompute_at_intervals(interval);
  } else if (options.activation_checkpointing) {
    module->recompute(settings.number_checkpoints);
  }
  return module;
}

class ScriptTraining : public Training {
 public:
  ScriptTraining(const Options& options, const Settings& settings, World& world)
      : task_(options, settings, world),
        engine_(initialize(module_of(options, settings, world), world, world.config())) {
    // For dropout; each rank draws numbers of its own.
    at::manual_seed(RandomStream(world.seed(), ~static_cast<uint64_t>(world.rank())).bits(0));
  }

  double optimizer_step() override {
    const int64_t micro_steps = engine_->gradient_accumulation_steps();
    double sum = 0;
    for (int64_t i = 0; i < micro_steps; ++i) {
      sum += forward_and_backward();
      engine_->step();
    }
    return sum / static_cast<double>(micro_steps);
  }
  ModelEngine& engine() override { return *engine_; }

 private:
  double forward_and_backward() {
    World& world = engine_->world();
    ScriptBatch batch = task_.batch(engine_->micro_steps(), world.rank(), world.size());
    std::vector<c10::IValue> inputs;
    for (at::Tensor& input : std::exchange(batch.inputs, {})) inputs.emplace_back(std::move(input));
    const at::Tensor mean = task_.loss(engine_->forward(std::move(inputs)), batch.target);
    engine_->backward(mean);
    return mean.item<float>();
  }

  ScriptTask task_;
  std::unique_ptr<ScriptEngine> engine_;
};

class ScriptPipeline : public Training {
 public:
  ScriptPipeline(const Options& options, const Settings& settings, World& world)
      : task_(options, settings, world),
        accumulation_(settings.batch.accumulation),
        engine_(chain(options, world), world, world.config(), options.activation_checkpointing) {}

  double optimizer_step() override {
    const ModelParallelUnit unit = engine_.mpu();
    int64_t micro_step = engine_.global_steps() * accumulation_;
    return engine_.train_batch([&] {
      const ScriptBatch batch = task_.batch(micro_step++, unit.data_parallel_rank, unit.data_parallel_world_size);
      return Tensors{batch.inputs.front(), batch.target};
    });
  }
  ModelEngine& engine() override { return engine_; }

 private:
  // Random classes are drawn when the output's shape is known.
  std::unique_ptr<LayerChain> chain(const Options& options, const World& world) const {
    require_one_input(task_.num_inputs());
    return chain_of_script(
        options.torchscript, world.device(),
        [this](const at::Tensor& output, const at::Tensor& target) { return task_.loss(output, target); });
  }

  ScriptTask task_;
  int64_t accumulation_;
  PipelineEngine engine_;
};

}  // namespace

std::unique_ptr<Training> make_torchscript_training(const Options& options, const Settings& settings, World& world) {
  if (settings.pipeline.stages > 1) return std::make_unique<ScriptPipeline>(options, settings, world);
  return std::make_unique<ScriptTraining>(options, settings, world);
}

}  // namespace dsat::trainer
