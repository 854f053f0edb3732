// The same updates twice: host tensors go to the loops of the room optimizer, device tensors to LibTorch operations
// that mirror them term by term. A device's are chunked, because each operation takes memory of its result's size.
#include "zero/shard_update.h"

#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "zero/zero_context.h"

namespace dsat::trainer {
namespace {

// Calls call(view) with the tensors as arrays of the host.
template <typename Call>
auto with_view(const ShardTensors& run, Call call) {
  const auto state = [&](size_t i) { return i < run.states.size() ? run.states[i].data_ptr<float>() : nullptr; };
  float* const param = run.param.data_ptr<float>();
  if (run.gradient.scalar_type() == at::kBFloat16) {
    const auto* const gradient = static_cast<const BFloat16*>(run.gradient.data_ptr());
    return call(ShardView<BFloat16>{param, gradient, state(0), state(1), run.param.numel()});
  }
  const at::Tensor gradient = run.gradient.to(at::kFloat);  // fp16 has no loops of its own
  return call(ShardView<float>{param, gradient.data_ptr<float>(), state(0), state(1), run.param.numel()});
}

}  // namespace

ShardTensors ShardTensors::narrow(int64_t begin, int64_t size) const {
  ShardTensors part{param.narrow(0, begin, size), {}, {}};
  if (gradient.defined()) part.gradient = gradient.narrow(0, begin, size);
  for (const at::Tensor& state : states) part.states.push_back(state.narrow(0, begin, size));
  return part;
}

void update(const OptimizerSettings& settings, int64_t step, double gradient_scale, const ShardTensors& shard) {
  if (!shard.param.is_cpu()) return on_device::update(settings, step, gradient_scale, shard);
  with_view(shard, [&](const auto& view) { update(settings, step, static_cast<float>(gradient_scale), view); });
}

LambSquares lamb_moments(const OptimizerSettings& settings, double gradient_scale, const ShardTensors& run) {
  if (!run.param.is_cpu()) return on_device::lamb_moments(settings, gradient_scale, run);
  return with_view(run,
                   [&](const auto& view) { return lamb_moments(settings, static_cast<float>(gradient_scale), view); });
}

// The gradient is in the moments already.
void lamb_apply(const OptimizerSettings& settings, int64_t step, double trust_ratio, const ShardTensors& run) {
  if (!run.param.is_cpu()) return on_device::lamb_apply(settings, step, trust_ratio, run);
  lamb_apply(settings, step, trust_ratio, run.param.data_ptr<float>(), run.states[0].data_ptr<float>(),
             run.states[1].data_ptr<float>(), run.param.numel());
}

double sum_of_squares(const at::Tensor& values) {
  const bool has_loops = values.scalar_type() == at::kFloat || values.scalar_type() == at::kBFloat16;
  if (!values.is_cpu() || !has_loops) return on_device::sum_of_squares(values);
  double squares = 0;
  with_data(values, [&](const auto* data) { squares = sum_of_squares(data, values.numel()); });
  return squares;
}

namespace on_device {
namespace {

// Chunks bound the memory of intermediate results; all are started without waiting for the device.
template <typename Call>
void for_each_chunk(int64_t size, Call call) {
  for (int64_t at = 0; at < size; at += kChunk) call(at, std::min(kChunk, size - at));
}

// Adam (Kingma and Ba, 2015), with L2 decay in the gradient or, as AdamW (Loshchilov and Hutter, 2019), beside it.
void adam(const OptimizerSettings& s, int64_t step, double scale, const ShardTensors& run) {
  const double correction1 = s.bias_correction ? 1 - std::pow(s.beta1, static_cast<double>(step)) : 1;
  const double correction2 = s.bias_correction ? 1 - std::pow(s.beta2, static_cast<double>(step)) : 1;
  at::Tensor g = at::mul(run.gradient.to(at::kFloat), scale);
  if (!s.decoupled_weight_decay && s.weight_decay != 0) g.add_(run.param, s.weight_decay);
  run.states[0].mul_(s.beta1).add_(g, 1 - s.beta1);
  run.states[1].mul_(s.beta2).addcmul_(g, g, 1 - s.beta2);
  g = run.states[1].sqrt().mul_(1 / std::sqrt(correction2)).add_(s.eps);
  if (s.decoupled_weight_decay) run.param.mul_(1 - s.lr * s.weight_decay);
  run.param.addcdiv_(run.states[0], g, -s.lr / correction1);
}

// SGD with momentum as torch.optim.SGD has it: the first step takes the gradient undamped.
void sgd(const OptimizerSettings& s, int64_t step, double scale, const ShardTensors& run) {
  at::Tensor g = at::mul(run.gradient.to(at::kFloat), scale);
  if (s.weight_decay != 0) g.add_(run.param, s.weight_decay);
  if (!run.states.empty()) {
    run.states[0].mul_(s.momentum).add_(g, step == 1 ? 1 : 1 - s.dampening);
    g = s.nesterov ? g.add_(run.states[0], s.momentum) : run.states[0];
  }
  run.param.add_(g, -s.lr);
}

// Lamb's direction r + lambda x (You et al., 2020, algorithm 2): elements move against it, by a length that is set
// later.
at::Tensor direction(const OptimizerSettings& s, const ShardTensors& run) {
  const at::Tensor root = s.eps_inside_sqrt ? run.states[1].add(s.eps).sqrt_() : run.states[1].sqrt().add_(s.eps);
  at::Tensor result = run.states[0].div(root);
  return s.weight_decay == 0 ? result : result.add_(run.param, s.weight_decay);
}

// In fp64: a sum over millions of fp32 elements would lose the small ones.
at::Tensor squares(const at::Tensor& values) { return values.to(at::kDouble).square_().sum(); }

}  // namespace

void update(const OptimizerSettings& settings, int64_t step, double gradient_scale, const ShardTensors& shard) {
  for_each_chunk(shard.param.numel(), [&](int64_t begin, int64_t size) {
    const ShardTensors run = shard.narrow(begin, size);
    settings.kind == OptimizerSettings::Kind::adam ? adam(settings, step, gradient_scale, run)
                                                   : sgd(settings, step, gradient_scale, run);
  });
}

LambSquares lamb_moments(const OptimizerSettings& s, double gradient_scale, const ShardTensors& whole) {
  // The two sums stay on the device until all chunks are started: reading one would wait for the device.
  const at::Tensor sums = at::zeros({2}, whole.param.options().dtype(at::kDouble));
  for_each_chunk(whole.param.numel(), [&](int64_t begin, int64_t size) {
    const ShardTensors run = whole.narrow(begin, size);
    const at::Tensor g = at::mul(run.gradient.to(at::kFloat), gradient_scale);
    run.states[0].mul_(s.beta1).add_(g, 1 - s.beta1);
    run.states[1].mul_(s.beta2).addcmul_(g, g, 1 - s.beta2);
    sums[0].add_(squares(run.param));
    sums[1].add_(squares(direction(s, run)));
  });
  const at::Tensor host = sums.to(at::kCPU);
  return {host[0].item<double>(), host[1].item<double>()};
}

void lamb_apply(const OptimizerSettings& s, int64_t step, double trust_ratio, const ShardTensors& whole) {
  const double length = lamb_rate(s, step) * trust_ratio;
  for_each_chunk(whole.param.numel(), [&](int64_t begin, int64_t size) {
    const ShardTensors run = whole.narrow(begin, size);
    run.param.add_(direction(s, run), -length);
  });
}

double sum_of_squares(const at::Tensor& values) {
  const at::Tensor sum = at::zeros({}, values.options().dtype(at::kDouble));
  for_each_chunk(values.numel(),
                 [&](int64_t begin, int64_t size) { sum.add_(squares(values.narrow(0, begin, size))); });
  return sum.item<double>();
}

}  // namespace on_device

}  // namespace dsat::trainer
