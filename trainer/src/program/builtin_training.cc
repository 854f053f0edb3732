// Trains a built-in model on random micro batches: data-parallel or as a pipeline, from a checkpoint if there is one.
// A micro batch is a function of its number, so any number of ranks sees the same data, and a resumed run goes on.
#include "program/builtin_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "device/device.h"
#include "device/device_memory.h"
#include "dsat/base/units.h"
#include "files/checkpoint_dir.h"
#include "model/layer_chain.h"
#include "model/model_module.h"
#include "program/torchscript_training.h"
#include "settings/settings.h"
#include "zero/save_and_load.h"
#include "zero/zero_context.h"

namespace dsat::trainer {
namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<Model> model_of(const Options& options, const Settings& settings, const World& world) {
  return make_model(options.model, dtype_of(settings), world.device());
}

std::shared_ptr<ModelModule> make_chain(const Options& options, const Settings& settings, const World& world) {
  auto model = model_of(options, settings, world);
  const size_t layers = model->layers().size();
  const int64_t interval = settings.pipeline.checkpoint_interval;
  const Segments segments =
      interval > 0 ? segments_of_interval(layers, interval) : segments_of(layers, settings.number_checkpoints);
  const bool recomputes = options.activation_checkpointing || interval > 0;
  auto chain = std::make_shared<ModelModule>(std::move(model), recomputes ? segments : Segments());
  const bool is_profile = settings.tuning.enabled && settings.tuning.model_info;
  if (is_profile && !recomputes) chain->measure_activations(segments);
  return chain;
}

// Micro batches are numbered through the whole training, data-parallel ranks innermost: a single process with as many
// more accumulation steps sees the same ones in the same order.
Batch batch_of(const Model& model, int64_t number, const World& world, const Settings& settings) {
  // Streams of data count from the far end, away from those of the parameters.
  const Batch batch =
      model.batch(RandomStream(world.seed(), ~static_cast<uint64_t>(number)), settings.batch.micro_batch);
  return {batch.input.to(world.device()), batch.target.to(world.device())};
}

class DataParallelTraining : public Training {
 public:
  DataParallelTraining(const Options& options, const Settings& settings, World& world)
      : settings_(settings),
        world_(world),
        engine_(initialize(make_chain(options, settings, world), world, world.config())) {}

  double optimizer_step() override {
    double sum = 0;
    for (int64_t i = 0; i < settings_.batch.accumulation; ++i) {
      sum += forward_and_backward();
      engine_->step();
    }
    return sum / static_cast<double>(settings_.batch.accumulation);
  }
  ModelEngine& engine() override { return *engine_; }

 private:
  double forward_and_backward() {
    const int64_t number = engine_->micro_steps() * world_.size() + world_.rank();
    const Batch data = batch_of(engine_->module().model(), number, world_, settings_);
    const at::Tensor loss = engine_->forward(data);
    engine_->backward(loss);
    return loss.item<float>();
  }

  const Settings& settings_;
  World& world_;
  std::unique_ptr<Engine<ModelModule>> engine_;
};

class PipelineTraining : public Training {
 public:
  PipelineTraining(const Options& options, const Settings& settings, World& world)
      : settings_(settings),
        world_(world),
        model_(model_of(options, settings, world)),
        engine_(chain_of(*model_), world, world.config(), options.activation_checkpointing) {}

  double optimizer_step() override {
    const ModelParallelUnit unit = engine_.mpu();
    int64_t micro_step = engine_.global_steps() * settings_.batch.accumulation;
    return engine_.train_batch([&] {
      const int64_t number = micro_step++ * unit.data_parallel_world_size + unit.data_parallel_rank;
      const Batch batch = batch_of(*model_, number, world_, settings_);
      return Tensors{batch.input, batch.target};
    });
  }
  ModelEngine& engine() override { return engine_; }

 private:
  const Settings& settings_;
  World& world_;
  std::unique_ptr<Model> model_;
  PipelineEngine engine_;
};

std::unique_ptr<Training> make_training(const Options& options, const Settings& settings, World& world) {
  if (!options.torchscript.empty()) return make_torchscript_training(options, settings, world);
  if (settings.pipeline.stages > 1) return std::make_unique<PipelineTraining>(options, settings, world);
  return std::make_unique<DataParallelTraining>(options, settings, world);
}

class Run {
 public:
  Run(const Options& options, World& world)
      : options_(options),
        world_(world),
        settings_(read_settings(world.config(), world.size(), fp16_on(world.device().is_cpu(), world.fp16_as_bf16()))
                      .settings),
        checkpoint_dir_(settings_.tuning.enabled ? "" : options.checkpoint_dir) {
    if (world.rank() == 0 && !checkpoint_dir_.empty()) require_writable("--checkpoint-dir", checkpoint_dir_);
    training_ = make_training(options, settings_, world);
    if (!options.weights.empty()) training_->engine().load_weights(options.weights);
  }

  void train();

 private:
  void print_step(int64_t step, double loss, double time_us);
  void print_end(double time_us);
  void print_nothing_left();
  int64_t steps() const;
  void resume();
  void save_if_due();

  const Options& options_;
  World& world_;
  Settings settings_;
  std::string checkpoint_dir_;  // empty: none. A tuning trial leaves the user's checkpoints alone
  std::unique_ptr<Training> training_;
  int64_t first_step_ = 0;  // after those of a checkpoint
};

void Run::print_step(int64_t step, double loss, double time_us) {
  const double mean = sum_over_ranks(world_.comm(), {loss})[0] / world_.size();
  if (world_.rank() != 0) return;
  std::printf("step %lld/%lld  loss %.6f  %.1f ms\n", static_cast<long long>(step + 1), static_cast<long long>(steps()),
              mean, time_us / 1000);
  std::fflush(stdout);
}

void Run::print_end(double time_us) {
  const double peak = max_over_ranks(world_.comm(), {static_cast<double>(memory_peak())})[0];
  if (world_.rank() != 0) return;
  const double samples = static_cast<double>((steps() - first_step_) * settings_.batch.train_batch);
  const int stages = settings_.pipeline.stages;
  const std::string cut = stages > 1 ? fmt::format(" in {} stages", stages) : "";
  std::printf("%lld parameters%s, %.1f samples/s, peak memory %s per rank\n",
              static_cast<long long>(training_->engine().num_params()), cut.c_str(),
              time_us > 0 ? samples * 1e6 / time_us : 0, format_size(peak).c_str());
}

// A tuning trial is ended by the engine.
int64_t Run::steps() const { return options_.steps.value_or(settings_.tuning.enabled ? INT64_MAX : kDefaultSteps); }

// Batches are numbered, so the next one follows from the number of steps that were made.
void Run::resume() {
  if (checkpoint_dir_.empty()) return;
  const std::string mended = world_.rank() == 0 ? repair_latest(checkpoint_dir_) : "";
  if (!mended.empty()) {
    std::fprintf(stderr, "%s: warning: %s/latest is missing: going on from %s, the last checkpoint there\n",
                 options_.program.c_str(), checkpoint_dir_.c_str(), mended.c_str());
  }
  world_.comm().barrier();
  if (!has_checkpoint(checkpoint_dir_)) return;
  training_->engine().load_checkpoint(checkpoint_dir_);
  first_step_ = training_->engine().global_steps();
}

void Run::save_if_due() {
  if (checkpoint_dir_.empty()) return;
  const int64_t done = training_->engine().global_steps();
  const bool due = done == steps() || (options_.checkpoint_every > 0 && done % options_.checkpoint_every == 0);
  if (due) training_->engine().save_checkpoint(checkpoint_dir_, fmt::format("step{}", done));
}

// A checkpoint that has all the steps.
void Run::print_nothing_left() {
  if (world_.rank() != 0) return;
  std::printf("nothing is left to train: the checkpoint in %s has made %lld steps of %lld; raise --steps\n",
              checkpoint_dir_.c_str(), static_cast<long long>(first_step_), static_cast<long long>(steps()));
}

void Run::train() {
  double total_us = 0;
  resume();
  if (first_step_ > 0 && first_step_ >= steps()) return print_nothing_left();
  for (int64_t step = first_step_; step < steps(); ++step) {
    const Clock::time_point start = Clock::now();
    const double loss = training_->optimizer_step();
    synchronize(world_.device());
    const double time_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    total_us += time_us;
    if (!settings_.tuning.enabled) print_step(step, loss, time_us);
    save_if_due();
  }
  if (!settings_.tuning.enabled) print_end(total_us);
}

}  // namespace

void train(const Options& options, World& world) { Run(options, world).train(); }

}  // namespace dsat::trainer
