// The learning rate of each update, as DeepSpeed's schedulers define it; OneCycle moves Adam's moments' decay as well.
//
// A pure function of the number of updates made before, so a schedule has no state to save. An update that is skipped
// for an overflow does not count, as in DeepSpeed. Units: updates, counted from 0. Threading: pure functions.
// Errors: none.
#ifndef DSAT_TRAINER_OPTIMIZER_LEARNING_RATE_H_
#define DSAT_TRAINER_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>
#include <optional>

namespace dsat::trainer {

// One rise and one fall, then a decay. Sizes are in updates, as floating-point numbers because DeepSpeed divides them.
struct Cycle {
  double first_size = 2000, second_size = 2000;
  int64_t first_stairs = 0, second_stairs = 0;  // 0: none, a straight line
  double decay_size = 0;                        // 0: no decay
  double decay_lr_rate = 0, decay_momentum_rate = 0;
  bool moves_momentum = true;
  double min_momentum = 0.8, max_momentum = 0.9;
};

struct ScheduleSettings {
  enum class Kind { constant, warmup, warmup_decay, warmup_cosine, one_cycle, range_test };
  Kind kind = Kind::constant;
  double min_lr = 0;            // also of a cycle and of a range test
  double max_lr = 1e-3;         // also of a cycle
  int64_t warmup_steps = 1000;  // at least 2, as DeepSpeed
  bool logarithmic = true;      // how it rises; false: in a straight line
  int64_t total_steps = 0;      // warmup_decay, warmup_cosine: the rate is at its end then
  double min_ratio = 0;         // warmup_cosine: of the optimizer's rate, at the start
  double end_ratio = 1e-4;      // and at the end
  int64_t step_size = 2000;     // range_test: updates from 1 to 1 + step_rate times min_lr
  double step_rate = 1;
  bool is_staircase = false;
  Cycle cycle;
};

// The rate of the update that follows `updates` others; `constant` is the optimizer's own lr.
double learning_rate(const ScheduleSettings& schedule, double constant, int64_t updates);

// Adam's and Lamb's betas for that update, where the schedule moves them.
struct Betas {
  double beta1, beta2;
};
std::optional<Betas> scheduled_betas(const ScheduleSettings& schedule, int64_t updates);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_OPTIMIZER_LEARNING_RATE_H_
