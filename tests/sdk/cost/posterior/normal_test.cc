// Likelihoods of the normal distribution: the far tail, and the share that has another cause.
// Slopes and curvatures are compared with differences of the log likelihood.
#include "cost/posterior/normal.h"

#include <gtest/gtest.h>

namespace dsat::cost {
namespace {

TEST(Censored, SlopeAndCurvatureAreDerivativesOfTheLogLikelihood) {
  constexpr double kStep = 1e-3;
  for (const double other_cause : {0.0, 0.1}) {
    for (const double z : {-60.0, -31.0, -29.0, -3.0, 0.0, 2.0}) {
      const double below = censored(z - kStep, other_cause).log_likelihood;
      const double above = censored(z + kStep, other_cause).log_likelihood;
      const Tail at = censored(z, other_cause);
      EXPECT_NEAR(at.slope, (above - below) / (2 * kStep), 1e-6 * (1 + std::abs(at.slope))) << z;
      EXPECT_NEAR(at.curvature, -(above - 2 * at.log_likelihood + below) / (kStep * kStep), 1e-4) << z;
    }
  }
}

TEST(Censored, TheFarTailJoinsTheRest) {
  const Tail below = censored(std::nextafter(kNormalTail, -100), 0), above = censored(kNormalTail, 0);
  EXPECT_NEAR(below.log_likelihood, above.log_likelihood, 1e-10 * std::abs(above.log_likelihood));
  EXPECT_NEAR(below.slope, above.slope, 1e-9 * above.slope);
  EXPECT_NEAR(below.curvature, above.curvature, 1e-6);
}

TEST(Censored, TheCurvatureStaysPositiveHoweverFarTheTail) {
  for (const double z : {-1e3, -1e6, -1e9}) EXPECT_NEAR(censored(z, 0).curvature, 1, 1e-5) << z;
}

TEST(ExpectedImprovement, OfACertainValueIsTheValueWhereItIsPositive) {
  EXPECT_EQ(expected_improvement(2, 0), 2);
  EXPECT_EQ(expected_improvement(-2, 0), 0);
  EXPECT_NEAR(expected_improvement(0, 3), 3 * normal_density(0), 1e-15);
}

}  // namespace
}  // namespace dsat::cost
