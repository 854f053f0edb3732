#include "torchscript.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mean.h>

#include <memory>
#include <utility>
#include <vector>

#include "dsat/trainer/engine.h"
#include "input_spec.h"
#include "model.h"
#include "script_module.h"

namespace dsat::trainer {
namespace {

using ScriptEngine = Engine<ScriptModule>;

std::shared_ptr<ScriptModule> module_of(const Options& options, const Settings& settings) {
  auto module = std::make_shared<ScriptModule>(options.torchscript);
  if (options.activation_checkpointing) module->recompute(settings.number_checkpoints);
  return module;
}

class ScriptTraining : public Training {
 public:
  ScriptTraining(const Options& options, const Settings& settings, World& world)
      : specs_(parse_input_spec(options.input_spec)),
        loss_(options.loss),
        engine_(initialize(module_of(options, settings), world, world.config())) {}

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
    const at::Tensor mean = loss(engine_->micro_steps() * world.size() + world.rank());
    engine_->backward(mean);
    return mean.item<float>();
  }
  // Of micro batch `number`.
  at::Tensor loss(int64_t number) const {
    const RandomStream stream(engine_->world().seed(), ~static_cast<uint64_t>(number));
    std::vector<c10::IValue> inputs;
    for (size_t i = 0; i < specs_.size(); ++i) inputs.push_back(input(RandomStream(stream.bits(0), i), specs_[i]));
    const at::Tensor output = engine_->forward(std::move(inputs));
    const bool is_mean = loss_.empty() ? output.numel() == 1 : loss_ == "mean";
    if (is_mean) return output.to(at::kFloat).mean();
    return cross_entropy(output, RandomStream(stream.bits(0), specs_.size()));
  }

  at::Tensor input(const RandomStream& stream, const InputSpec& spec) const {
    std::vector<int64_t> shape = {engine_->train_micro_batch_size_per_gpu()};
    shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
    if (spec.limit > 0) return random_integers(stream, shape, spec.limit);
    return random_values(stream, shape, engine_->dtype());
  }
  // Against random classes, of which the output's last dimension has the scores.
  static at::Tensor cross_entropy(const at::Tensor& output, const RandomStream& stream) {
    if (output.dim() < 2) {
      throw Error("the loss cross-entropy needs an output of (samples, ..., classes); this one has " +
                  std::to_string(output.dim()) + " dimensions");
    }
    const at::Tensor scores = output.reshape({-1, output.size(-1)}).to(at::kFloat);
    return at::cross_entropy_loss(scores, random_integers(stream, {scores.size(0)}, scores.size(1)));
  }

  std::vector<InputSpec> specs_;
  std::string loss_;
  std::unique_ptr<ScriptEngine> engine_;
};

}  // namespace

std::unique_ptr<Training> make_torchscript_training(const Options& options, const Settings& settings, World& world) {
  return std::make_unique<ScriptTraining>(options, settings, world);
}

}  // namespace dsat::trainer
