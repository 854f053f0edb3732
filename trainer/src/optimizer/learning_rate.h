// The learning rate of each update, as DeepSpeed's WarmupLR and WarmupDecayLR define it.
//
// A pure function of the number of updates made before, so a schedule has no state to save. An update that is skipped
// for an overflow does not count, as in DeepSpeed. Units: updates, counted from 0. Threading: pure functions.
// Errors: none.
#ifndef DSAT_TRAINER_OPTIMIZER_LEARNING_RATE_H_
#define DSAT_TRAINER_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

namespace dsat::trainer {

struct ScheduleSettings {
  enum class Kind { constant, warmup, warmup_decay };
  Kind kind = Kind::constant;
  double min_lr = 0;
  double max_lr = 1e-3;
  int64_t warmup_steps = 1000;  // at least 2, as DeepSpeed
  bool logarithmic = true;      // how it rises; false: in a straight line
  int64_t total_steps = 0;      // warmup_decay: the rate is back at min_lr then
};

// The rate of the update that follows `updates` others; `constant` is the optimizer's own lr.
double learning_rate(const ScheduleSettings& schedule, double constant, int64_t updates);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_OPTIMIZER_LEARNING_RATE_H_
