#include "training.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "budget_allocator.h"
#include "dsat/config/units.h"
#include "engine.h"
#include "flops.h"
#include "host_memory.h"
#include "result_files.h"

namespace dsat::trainer {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

int64_t worst_rank(Comm& comm, uint64_t bytes) {
  return static_cast<int64_t>(max_over_ranks(comm, {static_cast<double>(bytes)})[0]);
}

struct StepTimes {
  double forward_us = 0, backward_us = 0, step_us = 0, wall_us = 0;  // of one optimizer step

  void add(const StepTimes& other) {
    forward_us += other.forward_us;
    backward_us += other.backward_us;
    step_us += other.step_us;
    wall_us += other.wall_us;
  }
};

class Run {
 public:
  Run(const Plan& plan, Comm& comm)
      : plan_(plan),
        comm_(comm),
        model_(make_model(plan.model, plan.settings.bf16 ? at::kBFloat16 : at::kFloat)),
        segments_(plan.activation_checkpointing ? segments_of(model_->layers().size(), plan.settings.number_checkpoints)
                                                : Segments()),
        engine_(*model_, plan.settings, comm, plan.seed, segments_) {}

  void describe_model();
  void train();

 private:
  Batch batch(int64_t step, int64_t micro_step) const;
  StepTimes optimizer_step(int64_t step);
  void print_step(int64_t step, int64_t steps, const StepTimes& times);
  void print_end(const StepTimes& total, int64_t steps);
  double flops_of_a_micro_step();
  void write_metrics(const StepTimes& total);
  int64_t steps() const;

  const Plan& plan_;
  Comm& comm_;
  std::unique_ptr<Model> model_;
  Segments segments_;  // of the model that are recomputed in backward
  Engine engine_;
  std::vector<double> losses_;  // this rank's, of each optimizer step
};

// Micro batches are numbered through the whole training, ranks innermost: a single process with as many more
// accumulation steps sees the same ones in the same order.
Batch Run::batch(int64_t step, int64_t micro_step) const {
  const int64_t number = (step * plan_.settings.batch.accumulation + micro_step) * comm_.size() + comm_.rank();
  // Streams of data count from the far end, away from those of the parameters.
  return model_->batch(RandomStream(plan_.seed, ~static_cast<uint64_t>(number)), plan_.settings.batch.micro_batch);
}

StepTimes Run::optimizer_step(int64_t step) {
  StepTimes times;
  double loss_sum = 0;
  const Clock::time_point begin = Clock::now();
  engine_.begin_step();
  const int64_t accumulation = plan_.settings.batch.accumulation;
  for (int64_t i = 0; i < accumulation; ++i) {
    const Batch data = batch(step, i);
    Clock::time_point start = Clock::now();
    const at::Tensor loss = engine_.forward(data);
    times.forward_us += microseconds_since(start);
    start = Clock::now();
    engine_.backward(loss, i + 1 == accumulation);
    times.backward_us += microseconds_since(start);
    loss_sum += loss.item<float>();
  }
  const Clock::time_point start = Clock::now();
  engine_.step();
  times.step_us = microseconds_since(start);
  times.wall_us = microseconds_since(begin);
  losses_.push_back(loss_sum / static_cast<double>(accumulation));
  return times;
}

void Run::print_step(int64_t step, int64_t steps, const StepTimes& times) {
  const double loss = sum_over_ranks(comm_, {losses_.back()})[0] / comm_.size();
  if (comm_.rank() != 0) return;
  std::printf("step %lld/%lld  loss %.6f  %.1f ms\n", static_cast<long long>(step + 1), static_cast<long long>(steps),
              loss, times.wall_us / 1000);
  std::fflush(stdout);
}

void Run::print_end(const StepTimes& total, int64_t steps) {
  const auto peak = static_cast<double>(worst_rank(comm_, memory_peak()));
  if (comm_.rank() != 0) return;
  const double samples = static_cast<double>(steps * plan_.settings.batch.train_batch);
  std::printf("%lld parameters, %.1f samples/s, peak memory %s per rank\n",
              static_cast<long long>(engine_.layout().num_params()), samples * 1e6 / total.wall_us,
              config::format_size(peak).c_str());
}

int64_t Run::steps() const {
  if (!plan_.settings.tuning.enabled) return plan_.steps.value_or(kDefaultSteps);
  const int64_t needed = plan_.settings.tuning.end_profile_step + 1;
  return std::min(needed, plan_.steps.value_or(needed));
}

void Run::train() {
  const TuningSettings& tuning = plan_.settings.tuning;
  StepTimes all, measured;
  for (int64_t step = 0; step < steps(); ++step) {
    const StepTimes times = optimizer_step(step);
    all.add(times);
    if (step >= tuning.start_profile_step) measured.add(times);
    if (!tuning.enabled) print_step(step, steps(), times);
  }
  if (!tuning.enabled) return print_end(all, steps());
  if (steps() > tuning.end_profile_step) return write_metrics(measured);
  if (comm_.rank() == 0) {
    std::fprintf(stderr, "dsat-trial: ended after %lld steps, before end_profile_step %lld: nothing was measured\n",
                 static_cast<long long>(steps()), static_cast<long long>(tuning.end_profile_step));
  }
}

// A step of its own, not timed and without an update.
double Run::flops_of_a_micro_step() {
  const Batch data = batch(steps(), 0);
  engine_.begin_step();
  const FlopsCounter counter;
  engine_.backward(engine_.forward(data), /*is_last=*/true);
  engine_.abandon_step();
  return counter.flops();
}

void Run::write_metrics(const StepTimes& total) {
  const Settings& settings = plan_.settings;
  Metrics m;
  m.accumulation = settings.batch.accumulation;
  m.train_batch = settings.batch.train_batch;
  m.measured_steps = settings.tuning.end_profile_step - settings.tuning.start_profile_step + 1;
  const auto micro_steps = static_cast<double>(m.measured_steps * m.accumulation);
  m.forward_us = total.forward_us / micro_steps;
  m.backward_us = total.backward_us / micro_steps;
  m.step_us = total.step_us / micro_steps;
  m.wall_latency_us = total.wall_us / static_cast<double>(m.measured_steps);
  m.model_state_bytes = worst_rank(comm_, memory_in_use());
  m.peak_bytes = worst_rank(comm_, memory_peak());
  m.host_memory_bytes = worst_rank(comm_, host_memory_peak());
  m.skipped_steps = engine_.skipped_steps();
  m.precision = settings.precision();
  m.flops_per_micro_step = flops_of_a_micro_step();
  m.device_memory_bytes = plan_.device_memory;
  m.world_size = comm_.size();
  m.losses = sum_over_ranks(comm_, losses_);
  for (double& loss : m.losses) loss /= comm_.size();
  if (comm_.rank() == 0) write_atomically(settings.tuning.metric_path, to_json(m));
}

void Run::describe_model() {
  engine_.begin_step();
  const Batch data = batch(0, 0);
  const uint64_t before = memory_in_use();
  const at::Tensor loss = engine_.forward(data);
  ModelInfo info;
  info.activation_bytes = worst_rank(comm_, memory_in_use() - before);
  info.peak_bytes = worst_rank(comm_, memory_peak());
  info.num_params = engine_.layout().num_params();
  info.largest_layer_params = engine_.layout().largest_layer();
  info.device_memory_bytes = plan_.device_memory;
  info.world_size = comm_.size();
  info.activation_checkpoints = segments_.size();
  if (comm_.rank() == 0) write_atomically(plan_.settings.tuning.model_info_path, to_json(info));
}

}  // namespace

void train(const Plan& plan, Comm& comm) {
  Run run(plan, comm);
  if (plan.settings.tuning.enabled && plan.settings.tuning.model_info) {
    run.describe_model();
  } else {
    run.train();
  }
  // Nobody leaves while another still needs it.
  comm.barrier();
}

}  // namespace dsat::trainer
