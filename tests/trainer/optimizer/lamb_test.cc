// Lamb against its formula, and parts of a parameter against the whole.
// A parameter spread over ranks must move as one that is not.
#include "optimizer/lamb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace dsat::trainer {
namespace {

OptimizerSettings lamb() {
  OptimizerSettings s;
  s.kind = OptimizerSettings::Kind::lamb;
  s.lr = 0.1;
  s.weight_decay = 0.01;
  s.max_coeff = 10;
  s.min_coeff = 0.01;
  return s;
}

// One parameter of two elements with the gradient 2 x parameter: the published formulas in double precision.
std::vector<double> reference(const OptimizerSettings& s, int steps) {
  std::vector<double> p = {1, -3}, m = {0, 0}, v = {0, 0}, d = {0, 0};
  for (int step = 1; step <= steps; ++step) {
    double param_squares = 0, direction_squares = 0;
    for (size_t i = 0; i < 2; ++i) {
      const double g = 2 * p[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      d[i] = m[i] / (std::sqrt(v[i]) + s.eps) + s.weight_decay * p[i];
      param_squares += p[i] * p[i];
      direction_squares += d[i] * d[i];
    }
    const double ratio = std::sqrt(param_squares / direction_squares);
    const double rate = s.lr * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
    for (size_t i = 0; i < 2; ++i) p[i] -= rate * ratio * d[i];
  }
  return p;
}

// The two elements as two parts of the parameter, as two ranks have them.
std::vector<float> in_two_parts(const OptimizerSettings& s, int steps) {
  std::vector<float> p = {1, -3}, m = {0, 0}, v = {0, 0};
  for (int step = 1; step <= steps; ++step) {
    LambSquares whole;
    for (size_t i = 0; i < 2; ++i) {
      const float g = 4 * p[i];  // a sum of two, which the scale makes a mean
      const LambSquares part = lamb_moments(s, 0.5f, ShardView<float>{&p[i], &g, &m[i], &v[i], 1});
      whole.param += part.param;
      whole.direction += part.direction;
    }
    const double ratio = lamb_trust_ratio(s, whole);
    for (size_t i = 0; i < 2; ++i) lamb_apply(s, step, ratio, &p[i], &m[i], &v[i], 1);
  }
  return p;
}

TEST(LambTest, FollowsThePublishedFormulas) {
  for (int steps : {1, 2, 5}) {
    const std::vector<double> expected = reference(lamb(), steps);
    const std::vector<float> values = in_two_parts(lamb(), steps);
    for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(values[i], expected[i], 1e-5) << "after " << steps;
  }
}

TEST(LambTest, TheTrustRatioIsBounded) {
  OptimizerSettings s = lamb();
  EXPECT_DOUBLE_EQ(lamb_trust_ratio(s, {9, 4}), 1.5);
  EXPECT_DOUBLE_EQ(lamb_trust_ratio(s, {9e8, 4}), 10);
  EXPECT_DOUBLE_EQ(lamb_trust_ratio(s, {1, 1e8}), 0.01);
  // A parameter that starts at zero moves as Adam would move it.
  EXPECT_DOUBLE_EQ(lamb_trust_ratio(s, {0, 4}), 1);
  EXPECT_DOUBLE_EQ(lamb_trust_ratio(s, {4, 0}), 1);
}

TEST(LambTest, EpsMayBeInsideTheRoot) {
  OptimizerSettings s = lamb();
  s.eps = 0.5;
  s.eps_inside_sqrt = true;
  float p = 2, m = 0, v = 0;
  const float g = 1;
  const LambSquares squares = lamb_moments(s, 1, ShardView<float>{&p, &g, &m, &v, 1});
  EXPECT_NEAR(std::sqrt(squares.direction), 0.1 / std::sqrt(0.001 + 0.5) + 0.01 * 2, 1e-6);
}

}  // namespace
}  // namespace dsat::trainer
