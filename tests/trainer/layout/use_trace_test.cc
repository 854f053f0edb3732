// What stage 3 foresees of the order in which parameters are used.
// Micro steps are written as lists of groups.
#include "layout/use_trace.h"

#include <gtest/gtest.h>

#include <vector>

namespace dsat::trainer {
namespace {

std::vector<size_t> upcoming(const UseTrace& trace) {
  const UseTrace::Range range = trace.upcoming();
  return {range.begin(), range.end()};
}

// Forward through three groups and back.
void run(UseTrace& trace) {
  trace.begin();
  for (const size_t group : {0, 1, 1, 2, 1, 0}) trace.use(group);
}

TEST(UseTraceTest, NothingIsForeseenInTheFirstMicroStep) {
  UseTrace trace({10, 20, 30});
  run(trace);
  EXPECT_TRUE(upcoming(trace).empty());
  EXPECT_EQ(trace.distance_to(1), std::nullopt);
}

TEST(UseTraceTest, AMicroStepGoesLikeTheOneBefore) {
  UseTrace trace({10, 20, 30});
  run(trace);
  trace.begin();
  EXPECT_EQ(upcoming(trace), (std::vector<size_t>{0, 1, 2, 1, 0}));
  trace.use(0);
  trace.use(0);
  EXPECT_EQ(upcoming(trace), (std::vector<size_t>{1, 2, 1, 0}));
  EXPECT_EQ(trace.distance_to(1), 0);
  EXPECT_EQ(trace.distance_to(0), 20 + 30 + 20);
  trace.use(1);
  EXPECT_EQ(trace.distance_to(1), 30);
}

TEST(UseTraceTest, ASurpriseEndsWhatIsForeseenUntilTheNextMicroStep) {
  UseTrace trace({10, 20, 30});
  run(trace);
  trace.begin();
  trace.use(2);
  EXPECT_TRUE(upcoming(trace).empty());
  trace.use(1);
  EXPECT_TRUE(upcoming(trace).empty());
  trace.begin();
  EXPECT_EQ(upcoming(trace), (std::vector<size_t>{2, 1}));
}

TEST(UseTraceTest, FingerprintsTellDifferentUses) {
  UseTrace one({10, 20}), same({10, 20}), other({10, 20});
  for (const size_t group : {0, 1}) one.use(group);
  for (const size_t group : {0, 0, 1}) same.use(group);
  for (const size_t group : {1, 0}) other.use(group);
  EXPECT_EQ(one.fingerprint(), same.fingerprint());
  EXPECT_NE(one.fingerprint(), other.fingerprint());
  EXPECT_LT(one.fingerprint(), uint64_t{1} << 52);
}

TEST(UseTraceTest, AMicroStepThatGoesOnLongerForeseesNothingAtItsEnd) {
  UseTrace trace({10, 20});
  trace.begin();
  trace.use(0);
  trace.begin();
  trace.use(0);
  trace.use(1);
  EXPECT_TRUE(upcoming(trace).empty());
}

}  // namespace
}  // namespace dsat::trainer
