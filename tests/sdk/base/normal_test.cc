// The normal distribution against published values, and its tail against its own derivative.
#include "dsat/base/normal.h"

#include <gtest/gtest.h>

namespace dsat {
namespace {

TEST(Normal, HasItsKnownValues) {
  EXPECT_DOUBLE_EQ(normal_cdf(0), 0.5);
  EXPECT_NEAR(normal_cdf(1.959963984540054), 0.975, 1e-15);
  EXPECT_NEAR(normal_cdf(-1.2815515655446004), 0.1, 1e-15);
  EXPECT_NEAR(normal_density(0), 0.39894228040143268, 1e-16);
  EXPECT_NEAR(normal_density(2) / 0.053990966513188063, 1, 1e-15);
}

// Abramowitz and Stegun, table 26.2: -log10 Q(x) for x = 20 and 100.
TEST(Normal, IsExactFarOutWhereItUnderflows) {
  EXPECT_NEAR(-log_normal_cdf(-20) / std::log(10.0), 88.56010, 5e-6);
  EXPECT_NEAR(-log_normal_cdf(-100) / std::log(10.0), 2173.87154, 5e-6);
  EXPECT_TRUE(std::isfinite(log_normal_cdf(-1e6)));
}

TEST(Normal, ItsTailJoinsTheRestWithoutAStep) {
  for (const double z : {kNormalTail, kNormalTail + 1e-9}) {
    EXPECT_NEAR(log_normal_cdf(z) / log_normal_cdf(kNormalTail - 1e-9), 1, 1e-9);
    EXPECT_NEAR(normal_hazard(z) / normal_hazard(kNormalTail - 1e-9), 1, 1e-9);
  }
}

TEST(Normal, TheHazardIsTheSlopeOfTheLogarithm) {
  for (const double z : {-200.0, -35.0, -29.0, -3.0, 0.0, 2.5}) {
    const double step = 1e-4;
    const double slope = (log_normal_cdf(z + step) - log_normal_cdf(z - step)) / (2 * step);
    EXPECT_NEAR(normal_hazard(z) / slope, 1, 1e-6) << z;
  }
}

}  // namespace
}  // namespace dsat
