// Times forward, backward and step of the measured steps with a stopwatch that waits for the device, reads the memory
// counters at their end, and lets rank 0 write the result file. FLOPs are counted in a step that is not timed.
#include "measure/tuning_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "device/device.h"
#include "device/device_memory.h"
#include "device/offload_memory.h"

namespace dsat::trainer {
namespace {

// The most of any rank: a configuration fits only where its neediest rank does.
int64_t worst_rank(Comm& comm, uint64_t bytes) {
  return static_cast<int64_t>(max_over_ranks(comm, {static_cast<double>(bytes)})[0]);
}

double microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

int tuned_engines = 0;  // that live in this process

// Engines that count at the same time share one: a second one would begin the first one's count anew.
std::shared_ptr<FlopsCounter> shared_counter() {
  static std::weak_ptr<FlopsCounter> shared;
  std::shared_ptr<FlopsCounter> counter = shared.lock();
  if (!counter) shared = counter = std::make_shared<FlopsCounter>();
  return counter;
}

}  // namespace

TuningRun::TuningRun(World& world, const Settings& settings, ModelInfo info)
    : world_(world), settings_(settings), info_(std::move(info)) {
  info_.device_memory_bytes = world.device_memory();
  info_.world_size = world.size();
  if (!settings.tuning.enabled || ++tuned_engines != 2 || world.rank() != 0) return;
  const std::string line = fmt::format(
      "{}: warning: the trial has a second engine: fwd, bwd, step, FLOPS_per_gpu and num_params are those of one "
      "engine; latency and throughput are taken from end to end, and peak_memory is of all\n",
      world.program());
  std::fputs(line.c_str(), stderr);
}

TuningRun::~TuningRun() {
  const TuningSettings& tuning = settings_.tuning;
  stop_counting();
  if (tuning.enabled) --tuned_engines;
  if (!tuning.enabled || is_done_ || std::uncaught_exceptions() > 0 || world_.rank() != 0) return;
  // Not fmt::print(), which throws where stderr is closed.
  const std::string line = fmt::format("{}: ended after {} steps, before end_profile_step {}: nothing was measured\n",
                                       world_.program(), steps_, tuning.end_profile_step);
  std::fputs(line.c_str(), stderr);
}

bool TuningRun::is_measured() const {
  const TuningSettings& tuning = settings_.tuning;
  return tuning.enabled && steps_ >= tuning.start_profile_step && steps_ <= tuning.end_profile_step;
}

// In a micro step that is not timed: the first one of this run or, if that is timed, the first one after the measured
// steps.
bool TuningRun::counts_flops() const {
  const TuningSettings& tuning = settings_.tuning;
  const int64_t step = tuning.start_profile_step > first_step_ ? first_step_ : tuning.end_profile_step + 1;
  return tuning.enabled && steps_ == step && micro_steps_ == 0 && flops_ < 0;
}

// A micro step may have several forwards and backwards: all of them count.
void TuningRun::start_counting() {
  if (!counts_flops() || counter_) return;
  counter_ = shared_counter();
  flops_before_ = counter_->flops();
}

// What was computed since the start; none where this engine does not count.
std::optional<double> TuningRun::stop_counting() {
  if (!counter_) return std::nullopt;
  const double flops = counter_->flops() - flops_before_;
  counter_.reset();
  return flops;
}

void TuningRun::resume(int64_t steps) {
  first_step_ = steps_ = steps;
  const TuningSettings& tuning = settings_.tuning;
  if (!tuning.enabled || steps <= tuning.end_profile_step) return;
  throw Error(fmt::format("the checkpoint is past end_profile_step {}: no step is left to measure; load none here",
                          tuning.end_profile_step));
}

// A device computes behind the host's back: what was started on it has ended before the clock is read.
TuningRun::Clock::time_point TuningRun::now() const {
  if (settings_.tuning.enabled) synchronize(world_.device());
  return Clock::now();
}

// Time since the last lap, or since an operation began.
double TuningRun::lap() {
  const Clock::time_point end = now();
  const double time_us = microseconds(end - lap_start_);
  lap_start_ = end;
  return time_us;
}

void TuningRun::forward_begins() {
  before_forward_ = memory_in_use();
  start_counting();
  lap_start_ = now();
  if (steps_ == first_step_ && micro_steps_ == 0) first_step_begins();
}

void TuningRun::forward_ended() {
  if (is_measured()) total_.forward_us += lap();
  if (settings_.tuning.enabled && settings_.tuning.model_info) write_model_info();
}

void TuningRun::backward_begins() { lap_start_ = now(); }

void TuningRun::backward_ended(const at::Tensor& loss) {
  if (is_measured()) total_.backward_us += lap();
  if (settings_.tuning.enabled) loss_sum_ += loss.item<double>();
}

void TuningRun::step_begins() { lap_start_ = now(); }

void TuningRun::step_ended(bool is_update, int64_t skipped_steps, std::optional<double> grad_norm) {
  const TuningSettings& tuning = settings_.tuning;
  if (is_measured()) total_.step_us += lap();
  if (const auto flops = stop_counting()) flops_ = *flops;
  ++micro_steps_;
  if (!is_update) return;
  if (!tuning.enabled) return;
  if (steps_ <= tuning.end_profile_step) {
    losses_.push_back(loss_sum_ / static_cast<double>(micro_steps_));
    const bool is_skipped = skipped_steps > std::exchange(skipped_steps_, skipped_steps);
    grad_norms_.push_back(is_skipped ? std::nullopt : grad_norm);  // an overflow of the loss scale is no norm
  }
  loss_sum_ = 0;
  micro_steps_ = 0;
  ++steps_;
  const Clock::time_point end = now();
  if (steps_ == tuning.start_profile_step) window_start_ = end;
  if (steps_ == tuning.end_profile_step + 1) {
    // Before the step that counts FLOPs, which would raise the peaks.
    wall_us_ = microseconds(end - window_start_);
    state_bytes_ = worst_rank(world_.comm(), memory_in_use());
    host_bytes_ = worst_rank(world_.comm(), host_memory_peak());
    peak_bytes_ = worst_rank(world_.comm(), memory_peak());
    load_peak_bytes_ = worst_rank(world_.comm(), memory_load_peak());
  }
  if (steps_ > tuning.end_profile_step && flops_ >= 0) write_metrics(skipped_steps);
}

void TuningRun::whole_step_begins() {
  start_counting();
  if (steps_ == first_step_) first_step_begins();
}

void TuningRun::first_step_begins() {
  window_start_ = now();
  if (settings_.tuning.enabled) memory_load_peak();
}

void TuningRun::whole_step_ended(const StepTimes& times, double loss, int64_t skipped_steps,
                                 std::optional<double> grad_norm) {
  const int64_t micro_steps = settings_.batch.accumulation;
  if (const auto flops = stop_counting()) flops_ = *flops / static_cast<double>(micro_steps);
  if (is_measured()) {
    total_.forward_us += times.forward_us;
    total_.backward_us += times.backward_us;
    total_.step_us += times.step_us;
  }
  loss_sum_ = loss * static_cast<double>(micro_steps);
  micro_steps_ = micro_steps - 1;
  lap_start_ = now();
  step_ended(/*is_update=*/true, skipped_steps, grad_norm);
}

void TuningRun::write_model_info() {
  info_.activation_bytes = worst_rank(world_.comm(), memory_in_use() - before_forward_);
  info_.peak_bytes = worst_rank(world_.comm(), memory_peak());
  if (world_.rank() == 0) write_atomically(settings_.tuning.model_info_path, to_json(info_));
  is_done_ = true;
  throw TuningDone();
}

void TuningRun::write_metrics(int64_t skipped_steps) {
  const TuningSettings& tuning = settings_.tuning;
  TuningMetrics m;
  m.accumulation = settings_.batch.accumulation;
  m.train_batch = settings_.batch.train_batch;
  m.measured_steps = tuning.end_profile_step - std::max(first_step_, tuning.start_profile_step) + 1;
  const auto micro_steps = static_cast<double>(m.measured_steps * m.accumulation);
  m.forward_us = total_.forward_us / micro_steps;
  m.backward_us = total_.backward_us / micro_steps;
  m.step_us = total_.step_us / micro_steps;
  m.engines = tuned_engines;
  m.wall_latency_us = wall_us_ / static_cast<double>(m.measured_steps);
  m.model_state_bytes = state_bytes_;
  m.peak_bytes = peak_bytes_;
  m.load_peak_bytes = load_peak_bytes_;
  m.host_memory_bytes = host_bytes_;
  m.skipped_steps = skipped_steps;
  m.precision = settings_.precision();
  // The mean over ranks, because those of a pipeline compute different layers.
  m.flops_per_micro_step = sum_over_ranks(world_.comm(), {flops_})[0] / world_.size();
  m.device_memory_bytes = world_.device_memory();
  m.world_size = world_.size();
  m.losses = sum_over_ranks(world_.comm(), losses_);
  for (double& loss : m.losses) loss /= world_.size();
  m.grad_norms = grad_norms_;
  if (world_.rank() == 0) write_atomically(tuning.metric_path, to_json(m));
  is_done_ = true;
  throw TuningDone();
}

}  // namespace dsat::trainer
