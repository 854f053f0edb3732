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

TEST(Promises, AreBelievedUntilManyTrialsHaveEnded) {
  EXPECT_EQ(Promises().kept(kTolerance), 1);
  EXPECT_EQ(after(64, 0.01, 0).kept(kTolerance), 1);
  EXPECT_LT(after(65, 0.01, 0).kept(kTolerance), 0.01);
}

TEST(Promises, AreKeptByTheShareOfWhatWasExpected) {
  EXPECT_NEAR(after(80, 0.01, 0.01).kept(kTolerance), 1, 1e-9);
  EXPECT_EQ(after(80, 0.01, 0.02).kept(kTolerance), 1) << "more than promised is no more than kept";
  EXPECT_NEAR(after(80, 0.01, 0.005).kept(0), 0.5, 1e-9);
}

TEST(Promises, OnlyTheLastTrialsCount) {
  Promises promises = after(80, 0.01, 0.01);
  for (int i = 0; i < 64; ++i) promises.add(0.01, 0.1);
  EXPECT_EQ(promises.kept(0), 0);
}

TEST(Promises, ATrialThatMeasuredNothingGainedNothing) {
  Promises promises;
  promises.add(0.01, 0.0);
  for (int i = 0; i < 80; ++i) promises.add(0.01, std::nullopt);
  EXPECT_LT(promises.kept(kTolerance), 0.01);
}

TEST(Promises, AreBelievedUntilSomethingWasMeasured) {
  Promises promises;
  for (int i = 0; i < 80; ++i) promises.add(1, std::nullopt);
  EXPECT_EQ(promises.kept(kTolerance), 1);
  promises.add(0.01, 0.0);
  EXPECT_EQ(promises.kept(kTolerance), 1) << "the first that is measured is a gain without bounds";
}

// With a tolerance of 0 nobody wants a study to end for want of gain.
TEST(Promises, WithoutPromisesThereIsNothingToDoubt) { EXPECT_EQ(after(80, 0, 0).kept(0), 1); }

}  // namespace
}  // namespace dsat
