// A device's way of updating a shard against the loops of the host, on the same tensors of the host.
// They round differently, so results are compared by their distance as a whole.
#include "zero/shard_update.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace dsat::trainer {
namespace {

constexpr int64_t kSize = on_device::kChunk + 1000;  // more than one chunk

ShardTensors shard_of(const OptimizerSettings& settings, at::ScalarType gradient_type) {
  ShardTensors shard{at::randn({kSize}), at::randn({kSize}).to(gradient_type), {}};
  for (int i = 0; i < settings.num_states(); ++i) shard.states.push_back(at::zeros({kSize}));
  return shard;
}

ShardTensors copy_of(const ShardTensors& shard) {
  ShardTensors copy{shard.param.clone(), shard.gradient.clone(), {}};
  for (const at::Tensor& state : shard.states) copy.states.push_back(state.clone());
  return copy;
}

// As a whole: single elements whose gradient is the difference of nearly equal numbers may be anything.
double distance(const at::Tensor& a, const at::Tensor& b) { return ((a - b).norm() / b.norm()).item<double>(); }

void expect_alike(const ShardTensors& a, const ShardTensors& b) {
  EXPECT_LE(distance(a.param, b.param), 1e-6);
  EXPECT_TRUE(a.gradient.equal(b.gradient)) << "the gradient has changed";
  for (size_t i = 0; i < a.states.size(); ++i) EXPECT_LE(distance(a.states[i], b.states[i]), 1e-6) << i;
}

void expect_same_updates(const OptimizerSettings& settings, at::ScalarType gradient_type) {
  at::manual_seed(3);
  const ShardTensors host = shard_of(settings, gradient_type), device = copy_of(host);
  const at::Tensor before = host.param.clone();
  for (int64_t step = 1; step <= 3; ++step) {
    update(settings, step, 0.25, host);
    on_device::update(settings, step, 0.25, device);
  }
  EXPECT_GE(distance(host.param, before), 1e-3);
  expect_alike(device, host);
}

OptimizerSettings settings_of(OptimizerSettings::Kind kind) {
  OptimizerSettings settings;
  settings.kind = kind;
  settings.lr = 0.01;
  settings.weight_decay = 0.1;
  return settings;
}

TEST(ShardUpdate, AdamW) { expect_same_updates(settings_of(OptimizerSettings::Kind::adam), at::kFloat); }

TEST(ShardUpdate, AdamOfBrainFloatsWithL2) {
  OptimizerSettings settings = settings_of(OptimizerSettings::Kind::adam);
  settings.decoupled_weight_decay = settings.bias_correction = false;
  expect_same_updates(settings, at::kBFloat16);
}

TEST(ShardUpdate, SgdWithoutMomentum) { expect_same_updates(settings_of(OptimizerSettings::Kind::sgd), at::kFloat); }

TEST(ShardUpdate, SgdWithNesterovMomentum) {
  OptimizerSettings settings = settings_of(OptimizerSettings::Kind::sgd);
  settings.momentum = 0.9;
  settings.dampening = 0.2;
  expect_same_updates(settings, at::kFloat);
  settings.dampening = 0;
  settings.nesterov = true;
  expect_same_updates(settings, at::kHalf);
}

TEST(ShardUpdate, Lamb) {
  for (const bool inside : {false, true}) {
    OptimizerSettings settings = settings_of(OptimizerSettings::Kind::lamb);
    settings.eps_inside_sqrt = inside;
    at::manual_seed(5);
    const ShardTensors host = shard_of(settings, at::kBFloat16), device = copy_of(host);
    for (int64_t step = 1; step <= 2; ++step) {
      const LambSquares expected = lamb_moments(settings, 0.5, host);
      const LambSquares squares = on_device::lamb_moments(settings, 0.5, device);
      EXPECT_NEAR(squares.param, expected.param, 1e-6 * expected.param);
      EXPECT_NEAR(squares.direction, expected.direction, 1e-5 * expected.direction);
      lamb_apply(settings, step, 1.5, host);
      on_device::lamb_apply(settings, step, 1.5, device);
    }
    expect_alike(device, host);
  }
}

TEST(ShardUpdate, SumOfSquares) {
  const at::Tensor values = at::randn({kSize});
  EXPECT_NEAR(on_device::sum_of_squares(values), sum_of_squares(values), 1e-9 * kSize);
  // A value that is not finite shows.
  values[kSize - 1].fill_(INFINITY);
  EXPECT_FALSE(std::isfinite(on_device::sum_of_squares(values)));
  EXPECT_FALSE(std::isfinite(sum_of_squares(values.to(at::kHalf))));
}

}  // namespace
}  // namespace dsat::trainer
