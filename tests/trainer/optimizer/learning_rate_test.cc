// DeepSpeed's schedules, update by update.
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

// Ratios of the optimizer's 0.5. The cosine begins one step behind the warm-up.
TEST(LearningRateTest, CosineFallsToItsShareOfTheOptimizersRate) {
  ScheduleSettings s = schedule(Kind::warmup_cosine, false);
  s.min_ratio = 0.2;
  s.end_ratio = 0.1;
  const auto fall = [](double progress) { return 0.5 * (0.1 + 0.9 * (1 + std::cos(std::acos(-1.0) * progress)) / 2); };
  expect_near(rates(s, 11),
              {0, 0.5 * 0.2, 0.5 * 0.4, 0.5 * 0.6, 0.5 * 0.8, fall(0.25), fall(0.5), fall(0.75), 0.05, 0.05, 0.05});
}

TEST(LearningRateTest, OneCycleRisesFallsAndDecays) {
  ScheduleSettings s = schedule(Kind::one_cycle, false);
  s.cycle.first_size = 2;
  s.cycle.second_size = 4;
  expect_near(rates(s, 9), {0.1, 0.6, 1.1, 0.85, 0.6, 0.35, 0.1, 0.1, 0.1});
  s.cycle.decay_size = 2;
  s.cycle.decay_lr_rate = 1;
  const std::vector<double> decaying = rates(s, 9);
  EXPECT_NEAR(decaying[7], 0.1 / 1.5, 1e-12);
  EXPECT_NEAR(decaying[8], 0.1 / 2, 1e-12);
}

TEST(LearningRateTest, OneCycleWithStairsKeepsARateForSeveralUpdates) {
  ScheduleSettings s = schedule(Kind::one_cycle, false);
  s.cycle.first_size = s.cycle.second_size = 4;
  s.cycle.first_stairs = s.cycle.second_stairs = 2;
  expect_near(rates(s, 9), {0.1, 0.1, 0.6, 0.6, 1.1, 0.6, 0.6, 0.1, 0.1});
}

TEST(LearningRateTest, OneCycleMovesTheBetasAgainstTheRate) {
  ScheduleSettings s = schedule(Kind::one_cycle, false);
  s.cycle.first_size = s.cycle.second_size = 2;
  std::vector<double> momenta;
  for (int updates = 0; updates < 6; ++updates) {
    momenta.push_back(scheduled_betas(s, updates)->beta1);
    EXPECT_EQ(scheduled_betas(s, updates)->beta2, 0.99);
  }
  expect_near(momenta, {0.8, 0.85, 0.8, 0.85, 0.9, 0.9});
  s.cycle.moves_momentum = false;
  EXPECT_FALSE(scheduled_betas(s, 1));
  EXPECT_FALSE(scheduled_betas(schedule(Kind::warmup, false), 1));
}

TEST(LearningRateTest, ARangeTestRisesWithoutEnd) {
  ScheduleSettings s = schedule(Kind::range_test, false);
  s.step_size = 2;
  s.step_rate = 3;
  expect_near(rates(s, 5), {0.1, 0.25, 0.4, 0.55, 0.7});
  s.is_staircase = true;
  expect_near(rates(s, 5), {0.1, 0.1, 0.4, 0.4, 0.7});
}

}  // namespace
}  // namespace dsat::trainer
