// Lamb in two passes over flat arrays: moments and sums of squares first, the update by the trust ratio after.
// The sums are in double, so that the ratio does not depend on how a parameter is cut over ranks.
#include "optimizer/lamb.h"

#include <algorithm>
#include <cmath>

namespace dsat::trainer {
namespace {

// What the element is moved against, before its length is set.
struct Direction {
  explicit Direction(const OptimizerSettings& s)
      : outer_eps(s.eps_inside_sqrt ? 0 : static_cast<float>(s.eps)),
        inner_eps(s.eps_inside_sqrt ? static_cast<float>(s.eps) : 0),
        decay(static_cast<float>(s.weight_decay)) {}
  float operator()(float param, float m, float v) const {
    return m / (std::sqrt(v + inner_eps) + outer_eps) + decay * param;
  }
  float outer_eps, inner_eps, decay;
};

template <typename Gradient>
LambSquares moments(const OptimizerSettings& s, float scale, const ShardView<Gradient>& run) {
  const float beta1 = static_cast<float>(s.beta1), beta2 = static_cast<float>(s.beta2);
  const float rest1 = static_cast<float>(1 - s.beta1), rest2 = static_cast<float>(1 - s.beta2);
  const Direction direction(s);
  LambSquares sum;
  for (int64_t i = 0; i < run.size; ++i) {
    const float g = to_float(run.gradient[i]) * scale;
    const float m = beta1 * run.state1[i] + rest1 * g;
    const float v = beta2 * run.state2[i] + rest2 * g * g;
    run.state1[i] = m;
    run.state2[i] = v;
    const double p = run.param[i], d = direction(run.param[i], m, v);
    sum.param += p * p;
    sum.direction += d * d;
  }
  return sum;
}

}  // namespace

LambSquares lamb_moments(const OptimizerSettings& settings, float gradient_scale, const ShardView<float>& run) {
  return moments(settings, gradient_scale, run);
}

LambSquares lamb_moments(const OptimizerSettings& settings, float gradient_scale, const ShardView<BFloat16>& run) {
  return moments(settings, gradient_scale, run);
}

// A new parameter of zeros, or a direction of zeros, has no length to compare: then the step is Adam's.
double lamb_trust_ratio(const OptimizerSettings& s, const LambSquares& whole) {
  if (whole.param == 0 || whole.direction == 0) return 1;
  return std::clamp(std::sqrt(whole.param / whole.direction), s.min_coeff, s.max_coeff);
}

double lamb_rate(const OptimizerSettings& s, int64_t step) {
  if (!s.bias_correction) return s.lr;
  const auto n = static_cast<double>(step);
  return s.lr * std::sqrt(1 - std::pow(s.beta2, n)) / (1 - std::pow(s.beta1, n));
}

void lamb_apply(const OptimizerSettings& s, int64_t step, double trust_ratio, float* param, const float* state1,
                const float* state2, int64_t size) {
  const Direction direction(s);
  const auto length = static_cast<float>(lamb_rate(s, step) * trust_ratio);
  for (int64_t i = 0; i < size; ++i) param[i] -= length * direction(param[i], state1[i], state2[i]);
}

}  // namespace dsat::trainer
