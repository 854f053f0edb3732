// Adam, AdamW and SGD against their formulas, on a few elements.
// The same in fp32 and with gradients in bf16.
#include "optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace dsat::trainer {
namespace {

using Kind = OptimizerSettings::Kind;

// Runs `steps` updates of one parameter with the gradient 2 x parameter; returns the parameter after each.
std::vector<float> descend(const OptimizerSettings& settings, int steps, float scale = 1) {
  float param = 1, state1 = 0, state2 = 0;
  std::vector<float> values;
  for (int step = 1; step <= steps; ++step) {
    const float gradient = 2 * param / scale;
    const ShardView<float> shard{&param, &gradient, settings.num_states() > 0 ? &state1 : nullptr,
                                 settings.num_states() > 1 ? &state2 : nullptr, 1};
    update(settings, step, scale, shard);
    values.push_back(param);
  }
  return values;
}

TEST(OptimizerTest, AdamAsPublished) {
  OptimizerSettings s;
  s.lr = 0.1;
  double param = 1, m = 0, v = 0;
  const std::vector<float> values = descend(s, 5);
  for (int step = 1; step <= 5; ++step) {
    const double g = 2 * param;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    param -= 0.1 * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
    EXPECT_NEAR(values[static_cast<size_t>(step - 1)], param, 1e-5);
  }
}

TEST(OptimizerTest, WeightDecayIsDecoupledOrPartOfTheGradient) {
  OptimizerSettings s;
  s.lr = 0.1;
  s.weight_decay = 0.5;
  EXPECT_NEAR(descend(s, 1)[0], 1 - 0.1 * 0.5 - 0.1, 1e-6);
  s.decoupled_weight_decay = false;
  EXPECT_NEAR(descend(s, 1)[0], 1 - 0.1, 1e-6);  // the first step of Adam has the length lr whatever the gradient
}

TEST(OptimizerTest, SgdPlainWithMomentumAndNesterov) {
  OptimizerSettings s;
  s.kind = Kind::sgd;
  s.lr = 0.1;
  EXPECT_EQ(s.num_states(), 0);
  EXPECT_NEAR(descend(s, 2)[1], 0.64, 1e-6);
  s.momentum = 0.5;
  EXPECT_EQ(s.num_states(), 1);
  EXPECT_NEAR(descend(s, 2)[1], 0.8 - 0.1 * (0.5 * 2 + 1.6), 1e-6);
  s.nesterov = true;
  EXPECT_NEAR(descend(s, 1)[0], 1 - 0.1 * (2 + 0.5 * 2), 1e-6);
  s.nesterov = false;
  s.dampening = 0.25;
  EXPECT_NEAR(descend(s, 2)[1], 0.8 - 0.1 * (0.5 * 2 + 0.75 * 1.6), 1e-6);
}

TEST(OptimizerTest, TheScaleTurnsASumIntoAMean) {
  OptimizerSettings s;
  EXPECT_EQ(descend(s, 4, 0.25f), descend(s, 4));
}

TEST(OptimizerTest, GradientsInBf16) {
  OptimizerSettings s;
  s.kind = Kind::sgd;
  s.lr = 1;
  float param = 1;
  BFloat16 gradient;
  assign(gradient, 0.5f);
  update(s, 1, 1, ShardView<BFloat16>{&param, &gradient, nullptr, nullptr, 1});
  EXPECT_EQ(param, 0.5f);
}

TEST(OptimizerTest, ClippingBoundsTheNorm) {
  EXPECT_EQ(clip_factor(5, 0), 1);
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_NEAR(clip_factor(5, 1), 0.2, 1e-6);
  EXPECT_EQ(clip_factor(std::numeric_limits<double>::infinity(), 1), 1);
  const float values[] = {3, 4};
  EXPECT_EQ(sum_of_squares(values, 2), 25);
}

TEST(BFloat16Test, RoundsToNearestEven) {
  const auto round_trip = [](float value) {
    BFloat16 b;
    assign(b, value);
    return to_float(b);
  };
  EXPECT_EQ(round_trip(1.5f), 1.5f);
  EXPECT_EQ(round_trip(-0.0f), 0.0f);
  EXPECT_EQ(round_trip(1 + 0x1p-8f), 1.0f);             // half way: to even
  EXPECT_EQ(round_trip(1 + 3 * 0x1p-8f), 1 + 0x1p-6f);  // half way: to even
  EXPECT_EQ(round_trip(1 + 0x1p-8f + 0x1p-20f), 1 + 0x1p-7f);
  EXPECT_TRUE(std::isinf(round_trip(std::numeric_limits<float>::max())));
  EXPECT_TRUE(std::isnan(round_trip(std::nanf(""))));
}

}  // namespace
}  // namespace dsat::trainer
