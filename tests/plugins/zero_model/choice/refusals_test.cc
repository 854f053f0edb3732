// Which values are believed to be refused together, from made-up refusals of two clashing axes.
#include "zero_model/choice/refusals.h"

#include <gtest/gtest.h>

namespace dsat::tests {
namespace {

using zero_model::Arm;
using zero_model::Refusals;

Arm arm(int stage, double a, double b) {
  Arm made;
  made.stage = stage;
  made.coordinates = {a, b};
  return made;
}

TEST(Refusals, WithoutAnyAllIsAccepted) {
  Refusals refusals;
  EXPECT_EQ(refusals.probability_of_acceptance(arm(1, 0, 0)), 1);
  refusals.add(arm(1, 0, 0), false);
  EXPECT_EQ(refusals.probability_of_acceptance(arm(1, 1, 1)), 1);
}

TEST(Refusals, TwoValuesThatEachGoWithOthersClash) {
  Refusals refusals;
  refusals.add(arm(1, 0, 0), false);
  refusals.add(arm(1, 0, 1), false);
  refusals.add(arm(1, 1, 0), false);
  for (int i = 0; i < 4; ++i) refusals.add(arm(1 + i % 2, 1, 1), true);
  EXPECT_LT(refusals.probability_of_acceptance(arm(1, 1, 1)), 0.01);
  EXPECT_LT(refusals.probability_of_acceptance(arm(3, 1, 1)), 0.01) << "another stage changes nothing";
  EXPECT_EQ(refusals.probability_of_acceptance(arm(1, 1, 0)), 1);
  EXPECT_EQ(refusals.probability_of_acceptance(arm(3, 0, 1)), 1);
}

TEST(Refusals, AValueThatNeverRanMayBeTheCauseByItself) {
  Refusals refusals;
  refusals.add(arm(1, 0, 0), false);
  refusals.add(arm(1, 0, 1), true);
  refusals.add(arm(2, 1, 1), true);
  EXPECT_LT(refusals.probability_of_acceptance(arm(3, 7, 1)), 0.1);
  EXPECT_EQ(refusals.probability_of_acceptance(arm(3, 7, 0)), 1);
}

TEST(Refusals, WhatWasAcceptedOnceIsNoClash) {
  Refusals refusals;
  refusals.add(arm(1, 1, 1), false);
  for (int i = 0; i < 9; ++i) refusals.add(arm(1, 1, 1), true);
  EXPECT_EQ(refusals.probability_of_acceptance(arm(1, 1, 1)), 1) << "its micro batches differ";
}

}  // namespace
}  // namespace dsat::tests
