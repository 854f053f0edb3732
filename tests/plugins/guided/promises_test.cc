// How far promises are believed that were not kept.
#include "guided/promises.h"

#include <gtest/gtest.h>

namespace dsat {
namespace {

constexpr double kTolerance = 0.005;

// Trials that were each expected to gain `promised`; the best goes up by `gained` with each.
Promises after(int trials, double promised, double gained) {
  Promises promises;
  for (int i = 0; i < trials; ++i) promises.add(promised, gained * i);
  return promises;
}

TEST(Promises, AreBelievedUntilSoManyTrialsHaveEnded) {
  EXPECT_EQ(Promises().kept(6, 0, kTolerance), 1);
  EXPECT_EQ(after(5, 0.01, 0).kept(6, 0, kTolerance), 1);
  EXPECT_NEAR(after(6, 0.01, 0).kept(6, 0, kTolerance), kTolerance / (0.06 + kTolerance), 1e-9);
  EXPECT_EQ(after(63, 0.01, 0).kept(64, 0, kTolerance), 1);
  EXPECT_LT(after(64, 0.01, 0).kept(64, 0, kTolerance), 0.01);
}

TEST(Promises, AreKeptByTheShareOfWhatWasExpected) {
  EXPECT_NEAR(after(8, 0.01, 0.01).kept(8, 0.08, kTolerance), 1, 1e-9);
  EXPECT_EQ(after(8, 0.01, 0.02).kept(8, 0.16, kTolerance), 1) << "more than promised is no more than kept";
  EXPECT_NEAR(after(8, 0.01, 0.005).kept(8, 0.04, 0), 0.5, 1e-9);
}

TEST(Promises, OnlyTheLastTrialsCount) {
  Promises promises = after(80, 0.01, 0.01);
  for (int i = 0; i < 6; ++i) promises.add(0.01, 0.8);
  EXPECT_EQ(promises.kept(6, 0.8, 0), 0);
  EXPECT_GT(promises.kept(64, 0.8, 0), 0.8);
}

// A machine that has become slower, or a better fit, may lower what is expected of the best.
TEST(Promises, ABestThatIsExpectedLowerHasGainedNothing) { EXPECT_EQ(after(6, 0.01, 0).kept(6, -0.3, 0), 0); }

// With a tolerance of 0 nobody wants a study to end for want of gain.
TEST(Promises, WithoutPromisesThereIsNothingToDoubt) { EXPECT_EQ(after(80, 0, 0).kept(64, 0, 0), 1); }

}  // namespace
}  // namespace dsat
