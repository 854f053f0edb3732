// What a tuning trial measures while a training runs, and the files that it leaves.
//
// The configuration's autotuning section says which optimizer steps are measured and where the result goes. A training
// without that section calls the same functions, which then do next to nothing. Where a process has several engines,
// the first that has made its steps measures; what they all take shows in the time from end to end and in the peak.
// Threading: the compute thread; step_ended() and forward_ended() are collective. Units: microseconds, bytes. Errors:
// TuningDone when all is measured and written; dsat::Error.
#ifndef DSAT_TRAINER_MEASURE_TUNING_RUN_H_
#define DSAT_TRAINER_MEASURE_TUNING_RUN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dsat/trainer/world.h"
#include "files/result_files.h"
#include "measure/flops.h"
#include "settings/settings.h"

namespace dsat::trainer {

// Microseconds, added up over the micro steps of an optimizer step.
struct StepTimes {
  double forward_us = 0, backward_us = 0, step_us = 0;
};

class TuningRun {
 public:
  // Borrows world and settings. `info`: what is known of the model before it has run.
  TuningRun(World& world, const Settings& settings, ModelInfo info);
  // Prints a line on rank 0 when the training has ended too early for a measurement.
  ~TuningRun();

  // After a checkpoint: `steps` optimizer steps have been made before. Throws if a trial is past its window.
  void resume(int64_t steps);
  void forward_begins();
  void forward_ended();
  void backward_begins();
  // `loss`: of the micro step, a scalar.
  void backward_ended(const at::Tensor& loss);
  void step_begins();
  // After a micro step's step(). `is_update`: it has ended an optimizer step. `grad_norm`: of that step, if it is
  // known.
  void step_ended(bool is_update, int64_t skipped_steps, std::optional<double> grad_norm);
  // For a training whose micro steps overlap (a pipeline): around an optimizer step, in place of the other functions.
  void whole_step_begins();
  // `loss`: the mean over the micro steps.
  void whole_step_ended(const StepTimes& times, double loss, int64_t skipped_steps, std::optional<double> grad_norm);

 private:
  using Clock = std::chrono::steady_clock;

  void first_step_begins();
  bool is_measured() const;
  bool counts_flops() const;
  void start_counting();
  std::optional<double> stop_counting();
  Clock::time_point now() const;
  double lap();
  void write_model_info();
  void write_metrics(int64_t skipped_steps);

  World& world_;
  const Settings& settings_;
  ModelInfo info_;
  Clock::time_point lap_start_, window_start_;
  StepTimes total_;          // of the measured steps
  double wall_us_ = 0;       // from the first measured step's begin to the last one's end
  int64_t first_step_ = 0;   // after those of a checkpoint
  int64_t steps_ = 0;        // optimizer steps done, with those of a checkpoint
  int64_t micro_steps_ = 0;  // in this optimizer step
  int64_t skipped_steps_ = 0;
  uint64_t before_forward_ = 0;
  int64_t peak_bytes_ = 0, load_peak_bytes_ = 0, state_bytes_ = 0, host_bytes_ = 0;
  double loss_sum_ = 0;
  std::vector<double> losses_;                     // this rank's, of each optimizer step of this run
  std::vector<std::optional<double>> grad_norms_;  // of the same steps, the same on all ranks
  std::shared_ptr<FlopsCounter> counter_;
  double flops_before_ = 0;  // what it had counted when this engine began
  double flops_ = -1;        // of a micro step; -1: not counted yet
  bool is_done_ = false;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_MEASURE_TUNING_RUN_H_
