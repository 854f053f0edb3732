// Trains a TorchScript module on random inputs of the shapes in --input-spec.
// A module exported from a Sequential can be a pipeline; the number of a micro batch decides its inputs and classes.
#include "program/torchscript_training.h"

#include <ATen/Context.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>
#include <vector>

#include "dsat/trainer/engine.h"
#include "dsat/trainer/pipeline.h"
#include "model/model.h"
#include "model/script_chain.h"
#include "model/script_module.h"
#include "settings/input_spec.h"
#include "zero/zero_context.h"

namespace dsat::trainer {
namespace {

using ScriptEngine = Engine<ScriptModule>;

std::shared_ptr<ScriptModule> module_of(const Options& options, const Settings& settings, const World& world) {
  auto module = std::make_shared<ScriptModule>(options.torchscript, world.device());
  if (const int64_t interval = settings.pipeline.checkpoint_interval; interval > 0) {
    module->recompute_at_intervals(interval);
  } else if (options.activation_checkpointing) {
    module->recompute(settings.number_checkpoints);
  }
  return module;
}

// Random micro batches and the loss, by the number of the micro batch.
class ScriptTask {
 public:
  ScriptTask(const Options& options, const Settings& settings, const World& world)
      : specs_(parse_input_spec(options.input_spec)),
        loss_(options.loss),
        micro_batch_(settings.batch.micro_batch),
        dtype_(dtype_of(settings)),
        device_(world.device()),
        seed_(world.seed()) {}

  size_t num_inputs() const { return specs_.size(); }
  Tensors inputs(int64_t number) const {
    Tensors inputs;
    for (size_t i = 0; i < specs_.size(); ++i)
      inputs.push_back(input(RandomStream(stream(number).bits(0), i), specs_[i]));
    return inputs;
  }
  at::Tensor loss(int64_t number, const at::Tensor& output) const {
    // Its shape decides: the count of its numbers depends on the micro batch.
    const bool is_mean = loss_.empty() ? output.dim() == 0 : loss_ == "mean";
    if (is_mean) return output.to(at::kFloat).mean();
    return cross_entropy(output, RandomStream(stream(number).bits(0), specs_.size()));
  }

 private:
  RandomStream stream(int64_t number) const { return RandomStream(seed_, ~static_cast<uint64_t>(number)); }

  at::Tensor input(const RandomStream& stream, const InputSpec& spec) const {
    std::vector<int64_t> shape = {micro_batch_};
    shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
    if (spec.limit > 0) return random_integers(stream, shape, spec.limit).to(device_);
    return random_values(stream, shape, dtype_).to(device_);
  }
  // Against random classes, of which the output's last dimension has the scores.
  static at::Tensor cross_entropy(const at::Tensor& output, const RandomStream& stream) {
    if (output.dim() < 2 || output.size(-1) < 2) {
      throw Error(fmt::format(
          "the loss cross-entropy needs an output of (samples, ..., classes) with two classes or more; this "
          "one is ({}): add --loss mean",
          fmt::join(output.sizes(), ", ")));
    }
    const at::Tensor scores = output.reshape({-1, output.size(-1)}).to(at::kFloat);
    return at::cross_entropy_loss(scores,
                                  random_integers(stream, {scores.size(0)}, scores.size(1)).to(output.device()));
  }

  std::vector<InputSpec> specs_;
  std::string loss_;
  int64_t micro_batch_;
  at::ScalarType dtype_;
  at::Device device_;
  uint64_t seed_;
};

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
  int64_t num_params() const override { return engine_->num_params(); }
  int64_t global_steps() const override { return engine_->global_steps(); }
  void save(const std::string& dir, const std::string& tag) override { engine_->save_checkpoint(dir, tag); }
  void load(const std::string& dir) override { engine_->load_checkpoint(dir); }

 private:
  double forward_and_backward() {
    World& world = engine_->world();
    const int64_t number = engine_->micro_steps() * world.size() + world.rank();
    std::vector<c10::IValue> inputs;
    for (at::Tensor& input : task_.inputs(number)) inputs.emplace_back(std::move(input));
    const at::Tensor mean = task_.loss(number, engine_->forward(std::move(inputs)));
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
      const int64_t number = micro_step++ * unit.data_parallel_world_size + unit.data_parallel_rank;
      return Tensors{task_.inputs(number).front(), at::scalar_tensor(number, at::kLong)};
    });
  }
  int64_t num_params() const override { return engine_.num_params(); }
  int64_t global_steps() const override { return engine_.global_steps(); }
  void save(const std::string& dir, const std::string& tag) override { engine_.save_checkpoint(dir, tag); }
  void load(const std::string& dir) override { engine_.load_checkpoint(dir); }

 private:
  // The number of the micro batch is its target: the classes are drawn when the output's shape is known.
  std::unique_ptr<LayerChain> chain(const Options& options, const World& world) const {
    require_one_input(task_.num_inputs());
    return chain_of_script(options.torchscript, world.device(),
                           [this](const at::Tensor& output, const at::Tensor& number) {
                             return task_.loss(number.item<int64_t>(), output);
                           });
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
