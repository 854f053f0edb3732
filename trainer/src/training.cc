#include "training.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "budget_allocator.h"
#include "chain.h"
#include "dsat/config/units.h"
#include "settings.h"

namespace dsat::trainer {
namespace {

using Clock = std::chrono::steady_clock;

std::shared_ptr<Chain> make_chain(const Options& options, const Settings& settings) {
  auto model = make_model(options.model, settings.bf16 ? at::kBFloat16 : at::kFloat);
  Segments segments;
  if (options.activation_checkpointing) segments = segments_of(model->layers().size(), settings.number_checkpoints);
  return std::make_shared<Chain>(std::move(model), std::move(segments));
}

class Run {
 public:
  Run(const Options& options, World& world)
      : options_(options),
        world_(world),
        settings_(read_settings(world.config(), world.size(), world.fp16_as_bf16()).settings),
        engine_(initialize(make_chain(options, settings_), world, world.config())) {}

  void train();

 private:
  Batch batch() const;
  // This rank's mean over the micro steps.
  double optimizer_step();
  void print_step(double loss, double time_us);
  void print_end(double time_us);
  int64_t steps() const;

  const Options& options_;
  World& world_;
  Settings settings_;
  std::unique_ptr<Engine<Chain>> engine_;
};

// Micro batches are numbered through the whole training, ranks innermost: a single process with as many more
// accumulation steps sees the same ones in the same order.
Batch Run::batch() const {
  const int64_t number = engine_->micro_steps() * world_.size() + world_.rank();
  // Streams of data count from the far end, away from those of the parameters.
  const RandomStream stream(world_.seed(), ~static_cast<uint64_t>(number));
  return engine_->module().model().batch(stream, settings_.batch.micro_batch);
}

double Run::optimizer_step() {
  double sum = 0;
  for (int64_t i = 0; i < settings_.batch.accumulation; ++i) {
    {
      const Batch data = batch();
      const at::Tensor loss = engine_->forward(data);
      engine_->backward(loss);
      sum += loss.item<float>();
    }
    engine_->step();
  }
  return sum / static_cast<double>(settings_.batch.accumulation);
}

void Run::print_step(double loss, double time_us) {
  const double mean = sum_over_ranks(world_.comm(), {loss})[0] / world_.size();
  if (world_.rank() != 0) return;
  std::printf("step %lld/%lld  loss %.6f  %.1f ms\n", static_cast<long long>(engine_->global_steps()),
              static_cast<long long>(steps()), mean, time_us / 1000);
  std::fflush(stdout);
}

void Run::print_end(double time_us) {
  const double peak = max_over_ranks(world_.comm(), {static_cast<double>(memory_peak())})[0];
  if (world_.rank() != 0) return;
  const double samples = static_cast<double>(steps() * settings_.batch.train_batch);
  std::printf("%lld parameters, %.1f samples/s, peak memory %s per rank\n",
              static_cast<long long>(engine_->num_params()), samples * 1e6 / time_us,
              config::format_size(peak).c_str());
}

// A tuning trial is ended by the engine.
int64_t Run::steps() const { return options_.steps.value_or(settings_.tuning.enabled ? INT64_MAX : kDefaultSteps); }

void Run::train() {
  double total_us = 0;
  for (int64_t step = 0; step < steps(); ++step) {
    const Clock::time_point start = Clock::now();
    const double loss = optimizer_step();
    const double time_us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    total_us += time_us;
    if (!settings_.tuning.enabled) print_step(loss, time_us);
  }
  if (!settings_.tuning.enabled) print_end(total_us);
}

}  // namespace

void train(const Options& options, World& world) { Run(options, world).train(); }

}  // namespace dsat::trainer
