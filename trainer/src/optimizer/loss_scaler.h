// The factor that keeps small gradients above the smallest number of a 16-bit type, as DeepSpeed's fp16 section says.
//
// Dynamic: it doubles after `window` updates in a row without overflow; an overflow halves it once `hysteresis` is used
// up, never below min_scale. Whether there was an overflow must be agreed between the ranks before update().
// Threading: none of its own. Errors: dsat::Error, see update().
#ifndef DSAT_TRAINER_OPTIMIZER_LOSS_SCALER_H_
#define DSAT_TRAINER_OPTIMIZER_LOSS_SCALER_H_

#include <cstdint>

#include "dsat/error.h"

namespace dsat::trainer {

struct LossScaleSettings {
  bool enabled = false;
  double fixed = 0;  // above 0: this one always
  int64_t initial_power = 16;
  int64_t window = 1000;
  int64_t hysteresis = 2;               // overflows before the scale gives way
  bool consecutive_hysteresis = false;  // any update without overflow restores it; false: only a rise does
  double min_scale = 1;
};

class LossScaler {
 public:
  explicit LossScaler(const LossScaleSettings& settings);

  // What the loss is multiplied by and gradients are divided by; 1 when not enabled.
  double scale() const { return scale_; }
  // After each attempted update. Throws when a dynamic scale would have to fall below min_scale: training has diverged.
  void update(bool overflow);

  Json state() const;
  void restore(const Json& state);

 private:
  void lower();

  LossScaleSettings settings_;
  double scale_;
  int64_t hysteresis_left_;
  int64_t updates_ = 0;
  int64_t last_overflow_ = -1;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_OPTIMIZER_LOSS_SCALER_H_
