#include "zero/sharded_optimizer.h"

#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>

#include "device/offload_memory.h"
#include "optimizer/learning_rate.h"

namespace dsat::trainer {
at::Tensor optimizer_zeros(const ZeroContext& c, int64_t size, at::ScalarType dtype) {
  return c.settings.offload_optimizer ? host_zeros(size, dtype, c.device) : at::zeros({size}, c.options(dtype));
}

ShardedOptimizer::ShardedOptimizer(const ZeroContext& context, at::Tensor parameters,
                                   const std::function<void(const at::Tensor&)>& fill_master, SquaredNorm squared_norm)
    : c_(context),
      squared_norm_(std::move(squared_norm)),
      ranges_(owned_ranges(context.layout, context.partition, context.comm.rank())),
      parameters_(std::move(parameters)),
      master_(parameters_),
      scaler_(context.settings.loss_scale) {
  const Settings& s = c_.settings;
  const int64_t size = parameters_.numel();
  const bool is_elsewhere = parameters_.device() != c_.device;  // offloaded by themselves
  if (s.is_16_bit() || s.offload_optimizer || is_elsewhere) {
    master_ = optimizer_zeros(c_, size, at::kFloat);
    fill_master(master_);
  }
  for (int i = 0; i < s.optimizer.num_states(); ++i) states_.push_back(optimizer_zeros(c_, size, at::kFloat));
  if (s.offload_optimizer && s.stage == 1) host_gradient_ = host_zeros(size, c_.dtype, c_.device);
}

bool ShardedOptimizer::step(const at::Tensor& summed) {
  at::Tensor gradient = summed;
  if (host_gradient_.defined()) {
    host_gradient_.copy_(summed);
    gradient = host_gradient_;
  }
  const Settings& s = c_.settings;
  double scale = 1 / (c_.comm.size() * scaler_.scale());
  if (s.gradient_clipping > 0 || s.loss_scale.enabled) {
    const double norm = scale * std::sqrt(squares_of(gradient));
    gradient_norm_ = norm;
    const bool overflow = s.loss_scale.enabled && !std::isfinite(norm);
    scaler_.update(overflow);
    if (overflow) {
      ++skipped_steps_;
      return false;
    }
    scale *= clip_factor(norm, s.gradient_clipping);
  }
  const ShardTensors shard{master_, gradient, states_};
  if (s.optimizer.kind == OptimizerSettings::Kind::lamb) {
    update_with_lamb(shard, scale);
  } else {
    update(settings_now(), updates_ + 1, scale, shard);
  }
  ++updates_;
  publish_master();
  return true;
}

double ShardedOptimizer::learning_rate() const {
  return trainer::learning_rate(c_.settings.schedule, c_.settings.optimizer.lr, updates_);
}

OptimizerSettings ShardedOptimizer::settings_now() const {
  OptimizerSettings settings = c_.settings.optimizer;
  settings.lr = learning_rate();
  return settings;
}

// Of the sum's norm over all ranks. An element that is not finite shows in the squares of every rank.
double ShardedOptimizer::squares_of(const at::Tensor& gradient) {
  if (squared_norm_) return squared_norm_(gradient);
  const double squares = sum_of_squares(gradient);
  return c_.settings.stage > 0 ? sum_over_ranks(c_.comm, {squares})[0] : squares;
}

void ShardedOptimizer::update_with_lamb(const ShardTensors& shard, double scale) {
  const OptimizerSettings settings = settings_now();
  // Two sums for each parameter of the model: other ranks may hold parts that this one does not know of.
  size_t parameters = 0;
  for (const LayerSlot& layer : c_.layout.layers()) parameters += layer.parameters.size();
  std::vector<double> squares(2 * parameters);
  const auto place_of = [&](const OwnedRange& range) {
    return 2 * static_cast<size_t>(range.parameter - c_.layout.first_id());
  };
  for (const OwnedRange& range : ranges_) {
    const size_t at = place_of(range);
    const LambSquares part = lamb_moments(settings, scale, shard.narrow(range.shard_begin, range.size));
    squares[at] += part.param;
    squares[at + 1] += part.direction;
  }
  if (c_.settings.stage > 0) squares = sum_over_ranks(c_.comm, squares);
  for (const OwnedRange& range : ranges_) {
    const size_t at = place_of(range);
    const double ratio = lamb_trust_ratio(settings, {squares[at], squares[at + 1]});
    lamb_apply(settings, updates_ + 1, ratio, shard.narrow(range.shard_begin, range.size));
  }
}

void ShardedOptimizer::publish_master() {
  if (master_.is_same(parameters_)) return;
  parameters_.copy_(master_);
}

std::vector<NamedShard> ShardedOptimizer::arrays() const {
  std::vector<NamedShard> arrays = {{"master", master_}};
  for (size_t i = 0; i < states_.size(); ++i) arrays.push_back({"state" + std::to_string(i + 1), states_[i]});
  return arrays;
}

Json ShardedOptimizer::state() const {
  return {{"updates", updates_}, {"skipped_steps", skipped_steps_}, {"loss_scaler", scaler_.state()}};
}

void ShardedOptimizer::restore(const Json& state) {
  updates_ = state.at("updates").get<int64_t>();
  skipped_steps_ = state.at("skipped_steps").get<int64_t>();
  scaler_.restore(state.at("loss_scaler"));
  publish_master();
}

}  // namespace dsat::trainer
