// Counts updates and overflows as DeepSpeed's DynamicLossScaler does and moves the scale by factors of two.
// A fixed scale never moves and has no state.
#include "optimizer/loss_scaler.h"

#include <algorithm>
#include <cmath>

namespace dsat::trainer {
namespace {

double first_scale(const LossScaleSettings& s) {
  if (!s.enabled) return 1;
  return s.fixed > 0 ? s.fixed : std::ldexp(1.0, static_cast<int>(s.initial_power));
}

}  // namespace

LossScaler::LossScaler(const LossScaleSettings& settings)
    : settings_(settings), scale_(first_scale(settings)), hysteresis_left_(settings.hysteresis) {}

void LossScaler::update(bool overflow) {
  if (!settings_.enabled || settings_.fixed > 0) return;
  if (overflow) {
    lower();
    last_overflow_ = updates_;
  } else {
    // As DeepSpeed counts: a window after the last overflow, and every window after that.
    const bool rises = (updates_ - last_overflow_) % settings_.window == 0;
    if (rises) scale_ *= 2;
    if (rises || settings_.consecutive_hysteresis) hysteresis_left_ = settings_.hysteresis;
  }
  ++updates_;
}

void LossScaler::lower() {
  // A single overflow may be an accident of one batch.
  if (hysteresis_left_ > 1) {
    --hysteresis_left_;
    return;
  }
  if (scale_ == settings_.min_scale) {
    throw Error(DSAT_INTERNAL,
                "gradients overflow at the smallest loss scale allowed (fp16.min_loss_scale): training has diverged; "
                "lower the learning rate");
  }
  scale_ = std::max(scale_ / 2, settings_.min_scale);
}

Json LossScaler::state() const {
  return {{"scale", scale_},
          {"hysteresis_left", hysteresis_left_},
          {"updates", updates_},
          {"last_overflow", last_overflow_}};
}

void LossScaler::restore(const Json& state) {
  // The configuration decides whether there is a dynamic scale; only such a one has a state. One without an update was
  // saved where there was none (fp32, bf16, a fixed scale).
  if (!settings_.enabled || settings_.fixed > 0 || state.at("updates") == 0) return;
  scale_ = state.at("scale").get<double>();
  hysteresis_left_ = state.at("hysteresis_left").get<int64_t>();
  updates_ = state.at("updates").get<int64_t>();
  last_overflow_ = state.at("last_overflow").get<int64_t>();
}

}  // namespace dsat::trainer
