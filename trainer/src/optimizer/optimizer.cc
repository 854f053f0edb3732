// Adam, AdamW and SGD as loops over a shard, templates over the gradient's type.
// Each loop reads and writes every array once: the update is bound by memory, not by arithmetic.
#include "optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

namespace dsat::trainer {
namespace {

template <typename Gradient>
void adam(const OptimizerSettings& s, int64_t step, float scale, const ShardView<Gradient>& shard) {
  // Moments start at zero, so the first ones are too small by these factors (Kingma and Ba, 2015, section 3).
  const double correction1 = s.bias_correction ? 1 - std::pow(s.beta1, static_cast<double>(step)) : 1;
  const double correction2 = s.bias_correction ? 1 - std::pow(s.beta2, static_cast<double>(step)) : 1;
  const float beta1 = static_cast<float>(s.beta1), beta2 = static_cast<float>(s.beta2);
  const float rest1 = static_cast<float>(1 - s.beta1), rest2 = static_cast<float>(1 - s.beta2);
  const float step_size = static_cast<float>(s.lr / correction1);
  const float root2 = static_cast<float>(1 / std::sqrt(correction2));
  const float eps = static_cast<float>(s.eps);
  // AdamW shrinks the parameter by itself; L2 adds to the gradient and passes through the moments.
  const float shrink = s.decoupled_weight_decay ? static_cast<float>(1 - s.lr * s.weight_decay) : 1.0f;
  const float l2 = s.decoupled_weight_decay ? 0.0f : static_cast<float>(s.weight_decay);
  for (int64_t i = 0; i < shard.size; ++i) {
    const float g = to_float(shard.gradient[i]) * scale + l2 * shard.param[i];
    const float m = beta1 * shard.state1[i] + rest1 * g;
    const float v = beta2 * shard.state2[i] + rest2 * g * g;
    shard.state1[i] = m;
    shard.state2[i] = v;
    shard.param[i] = shard.param[i] * shrink - step_size * m / (std::sqrt(v) * root2 + eps);
  }
}

template <typename Gradient>
void sgd(const OptimizerSettings& s, int64_t step, float scale, const ShardView<Gradient>& shard) {
  const float lr = static_cast<float>(s.lr), decay = static_cast<float>(s.weight_decay);
  const float momentum = static_cast<float>(s.momentum);
  // The first gradient enters the buffer undamped.
  const float enters = step == 1 ? 1.0f : static_cast<float>(1 - s.dampening);
  for (int64_t i = 0; i < shard.size; ++i) {
    float g = to_float(shard.gradient[i]) * scale + decay * shard.param[i];
    if (shard.state1 != nullptr) {
      const float buffer = momentum * shard.state1[i] + enters * g;
      shard.state1[i] = buffer;
      g = s.nesterov ? g + momentum * buffer : buffer;
    }
    shard.param[i] -= lr * g;
  }
}

template <typename Gradient>
void dispatch(const OptimizerSettings& s, int64_t step, float scale, const ShardView<Gradient>& shard) {
  if (s.kind == OptimizerSettings::Kind::adam) {
    adam(s, step, scale, shard);
  } else {
    sgd(s, step, scale, shard);
  }
}

// In double: a long fp32 sum would lose the small elements.
template <typename T>
double squares(const T* values, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(to_float(values[i])) * to_float(values[i]);
  return sum;
}

}  // namespace

void update(const OptimizerSettings& settings, int64_t step, float gradient_scale, const ShardView<float>& shard) {
  dispatch(settings, step, gradient_scale, shard);
}

void update(const OptimizerSettings& settings, int64_t step, float gradient_scale, const ShardView<BFloat16>& shard) {
  dispatch(settings, step, gradient_scale, shard);
}

double sum_of_squares(const float* values, int64_t size) { return squares(values, size); }
double sum_of_squares(const BFloat16* values, int64_t size) { return squares(values, size); }

double clip_factor(double norm, double max_norm) {
  if (max_norm <= 0) return 1;
  // A norm that is not finite must show in the loss, not be hidden by a factor of 0.
  // 1e-6 as in torch.nn.utils.clip_grad_norm_, for a norm of 0.
  return std::isfinite(norm) ? std::min(1.0, max_norm / (norm + 1e-6)) : 1;
}

}  // namespace dsat::trainer
