// DeepSpeed's warm-up schedules, update by update.
// The expected rates were computed from DeepSpeed's definitions.
#include "optimizer/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace dsat::trainer {
namespace {

using Kind = ScheduleSettings::Kind;

ScheduleSettings schedule(Kind kind, bool logarithmic) {
  ScheduleSettings s;
  s.kind = kind;
  s.min_lr = 0.1;
  s.max_lr = 1.1;
  s.warmup_steps = 4;
  s.logarithmic = logarithmic;
  s.total_steps = 8;
  return s;
}

std::vector<double> rates(const ScheduleSettings& s, int count) {
  std::vector<double> values;
  for (int updates = 0; updates < count; ++updates) values.push_back(learning_rate(s, 0.5, updates));
  return values;
}

void expect_near(const std::vector<double>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-12) << "update " << i + 1;
}

TEST(LearningRateTest, WithoutAScheduleItIsTheOptimizersOwn) { expect_near(rates({}, 3), {0.5, 0.5, 0.5}); }

// The scheduler steps after each update, and its own count begins at 0: the first two updates are made at the lowest
// rate.
TEST(LearningRateTest, WarmupInAStraightLine) {
  expect_near(rates(schedule(Kind::warmup, false), 7), {0.1, 0.1, 0.35, 0.6, 0.85, 1.1, 1.1});
}

TEST(LearningRateTest, WarmupByTheLogarithm) {
  expect_near(rates(schedule(Kind::warmup, true), 6),
              {0.1, 0.1, 0.6, 0.1 + std::log(3) / std::log(4), 0.1 + 1, 0.1 + 1});
}

TEST(LearningRateTest, DecayEndsAtTheLowestRateAndStaysThere) {
  expect_near(rates(schedule(Kind::warmup_decay, false), 11),
              {0.1, 0.1, 0.35, 0.6, 0.85, 1.1, 0.85, 0.6, 0.35, 0.1, 0.1});
}

}  // namespace
}  // namespace dsat::trainer
