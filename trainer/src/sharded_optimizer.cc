#include "sharded_optimizer.h"

#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>

#include "optimizer.h"

namespace dsat::trainer {
namespace {

at::Tensor float_zeros(int64_t size) { return at::zeros({size}, at::TensorOptions().dtype(at::kFloat)); }

}  // namespace

ShardedOptimizer::ShardedOptimizer(const ZeroContext& context, at::Tensor parameters,
                                   const std::function<void(float*)>& fill_master)
    : c_(context), parameters_(std::move(parameters)), master_(parameters_) {
  if (c_.settings.bf16) {
    master_ = float_zeros(parameters_.numel());
    fill_master(master_.data_ptr<float>());
  }
  for (int i = 0; i < c_.settings.optimizer.num_states(); ++i) states_.push_back(float_zeros(parameters_.numel()));
}

void ShardedOptimizer::step(const at::Tensor& gradient) {
  const double scale = clipped_scale(gradient);
  ++steps_;
  const auto state = [&](size_t i) { return i < states_.size() ? states_[i].data_ptr<float>() : nullptr; };
  with_data(gradient, [&](const auto* data) {
    using Element = std::decay_t<decltype(*data)>;
    const ShardView<Element> view{master_.data_ptr<float>(), data, state(0), state(1), master_.numel()};
    update(c_.settings.optimizer, steps_, static_cast<float>(scale), view);
  });
  if (c_.settings.bf16) round_parameters();
}

// What a summed gradient is multiplied by: the mean over the ranks, with the norm over all of them held in bounds.
double ShardedOptimizer::clipped_scale(const at::Tensor& gradient) {
  const double mean = 1.0 / c_.comm.size();
  if (c_.settings.gradient_clipping <= 0) return mean;
  double squares = 0;
  with_data(gradient, [&](auto* data) { squares = sum_of_squares(data, gradient.numel()); });
  if (c_.settings.stage > 0) squares = sum_over_ranks(c_.comm, {squares})[0];
  return mean * clip_factor(mean * std::sqrt(squares), c_.settings.gradient_clipping);
}

void ShardedOptimizer::round_parameters() {
  auto* const rounded = static_cast<BFloat16*>(parameters_.data_ptr());
  const float* const master = master_.data_ptr<float>();
  for (int64_t i = 0; i < master_.numel(); ++i) assign(rounded[i], master[i]);
}

}  // namespace dsat::trainer
