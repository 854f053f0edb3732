// Student's t distribution against its tables, and what repeats tell of the noise.
#include "finals/noise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dsat::host {
namespace {

TEST(NoiseTest, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_quantile(0.975, 1), 12.706, 1e-3);
  EXPECT_NEAR(student_quantile(0.975, 2), 4.303, 1e-3);
  EXPECT_NEAR(student_quantile(0.975, 3), 3.182, 1e-3);
  EXPECT_NEAR(student_quantile(0.975, 4), 2.776, 1e-3);
  EXPECT_NEAR(student_quantile(0.975, 7), 2.365, 1e-3);
  EXPECT_NEAR(student_quantile(0.95, 10), 1.812, 1e-3);
  EXPECT_NEAR(student_quantile(0.975, 500), 1.965, 1e-3);
  for (const double degrees : {1.0, 2.0, 5.0, 8.0}) {
    EXPECT_DOUBLE_EQ(student_cdf(0, degrees), 0.5);
    EXPECT_NEAR(student_cdf(1.3, degrees) + student_cdf(-1.3, degrees), 1, 1e-12);
  }
}

TEST(NoiseTest, RepeatsOfAConfigurationTellTheNoise) {
  Repeats repeats;
  repeats.add({1.0});
  EXPECT_EQ(repeats.degrees, 0) << "one measurement says nothing";
  repeats.add({1.0, 1.2});
  repeats.add({5.0, 5.0, 5.3});
  EXPECT_EQ(repeats.degrees, 3);
  EXPECT_NEAR(repeats.squares, 0.02 + 0.06, 1e-12);
  EXPECT_EQ(to_json(repeats_from_json(to_json(repeats))), to_json(repeats));
}

TEST(NoiseTest, MoreMeasurementsNarrowADifference) {
  const Difference few = difference({1.0}, {0.5}, {}), more = difference({1.0, 1.0, 1.0}, {0.5, 0.5, 0.5}, {});
  EXPECT_DOUBLE_EQ(few.mean, 0.5);
  EXPECT_NEAR(few.scale, kPriorDeviation * std::sqrt(2), 1e-12);
  EXPECT_LT(more.half_width(), few.half_width() / 2);
  EXPECT_GT(few.chance_above(0), 0.99);
  EXPECT_NEAR(few.chance_above(0.5), 0.5, 1e-12);
}

TEST(NoiseTest, AGainIsExpectedOfTheDifferencesAboveZero) {
  constexpr double kNormalDensity = 0.3989;
  EXPECT_NEAR((Difference{0, 1, 1000}.expected_gain()), kNormalDensity, 1e-3);
  EXPECT_NEAR((Difference{9, 1, 1000}.expected_gain()), 9, 1e-6);
  EXPECT_NEAR((Difference{-9, 1, 1000}.expected_gain()), 0, 1e-6);
  EXPECT_GT((Difference{0, 1, 2}.expected_gain()), kNormalDensity) << "long tails";
}

TEST(NoiseTest, AnotherMeasurementGainsLessTheMoreThereAre) {
  const Repeats others{0.04, 100};
  EXPECT_LT(gain_of_another({1, 1}, {1, 1}, others), gain_of_another({1}, {1}, others));
  EXPECT_LT(gain_of_another({1}, {1.1}, others), gain_of_another({1}, {1}, others));
  EXPECT_DOUBLE_EQ(gain_of_another({1}, {1.1}, others), gain_of_another({1.1}, {1}, others));
}

TEST(NoiseTest, WhatWasMeasuredBeforeTheChoiceWidensTheIntervalAndDoesNotMoveIt) {
  const Difference quiet = difference({8.7}, {6.1}, {}, {8.71}), noisy = difference({8.7}, {6.1}, {}, {10.2});
  EXPECT_DOUBLE_EQ(noisy.mean, quiet.mean);
  EXPECT_LT(quiet.half_width(), 0.15);
  EXPECT_GT(noisy.half_width(), 10 * quiet.half_width()) << "the two differ by a factor of 4.5";
}

TEST(NoiseTest, RepeatsThatRefuteThePriorTakeItsPlace) {
  Repeats repeats;
  repeats.add({0.0, 0.6});  // a standard deviation of 0.42
  const Difference apart = difference({1.0}, {0.5}, repeats);
  EXPECT_NEAR(apart.scale, 0.6, 0.01);
  EXPECT_LT(apart.degrees, 1.1);
  Repeats usual;
  usual.add({0.0, 0.02});
  EXPECT_DOUBLE_EQ(difference({1.0}, {0.5}, usual).degrees, 3);
}

}  // namespace
}  // namespace dsat::host
