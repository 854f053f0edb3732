// The micro batches that a space allows, and their ranks.
// Spaces of integers, of divisors, without a bound, and empty.
#include "search/micro_batches.h"

#include <gtest/gtest.h>

#include <limits>

namespace dsat::search {
namespace {

TEST(MicroBatches, AllIntegersBetweenTheBounds) {
  config::Space space;
  space.min_micro_batch = 3;
  space.max_micro_batch = 9;
  const MicroBatches legal(space);
  EXPECT_EQ(legal.count(), 7);
  EXPECT_EQ(legal.smallest(), 3);
  EXPECT_EQ(legal.at(6), 9);
  EXPECT_EQ(legal.rank_at_or_below(2.9), -1);
  EXPECT_EQ(legal.rank_at_or_below(3), 0);
  EXPECT_EQ(legal.rank_at_or_below(5.7), 2);
  EXPECT_EQ(legal.rank_at_or_below(100), 6);
}

TEST(MicroBatches, OnlyDivisorsOfAFixedGlobalBatch) {
  config::Space space;
  space.micro_batch_divides = 36;
  space.min_micro_batch = 2;
  space.max_micro_batch = 18;
  const MicroBatches legal(space);
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < legal.count(); ++rank) all.push_back(legal.at(rank));
  EXPECT_EQ(all, (std::vector<int64_t>{2, 3, 4, 6, 9, 12, 18}));
  EXPECT_EQ(legal.rank_at_or_below(8), 3);
  EXPECT_EQ(legal.rank_at_or_below(1), -1);
}

TEST(MicroBatches, NoBoundIsStillFinite) {
  const MicroBatches legal{config::Space()};
  EXPECT_GT(legal.count(), 1000000);
  EXPECT_EQ(legal.rank_at_or_below(std::numeric_limits<double>::infinity()), legal.count() - 1);
  EXPECT_EQ(legal.rank_at_or_below(std::numeric_limits<double>::quiet_NaN()), -1);
  EXPECT_EQ(legal.rank_at_or_below(-5), -1);
}

TEST(MicroBatches, AnEmptyRangeIsEmpty) {
  config::Space space;
  space.min_micro_batch = 5;
  space.max_micro_batch = 4;
  EXPECT_TRUE(MicroBatches(space).empty());
  space.max_micro_batch = 6;
  space.micro_batch_divides = 7;
  EXPECT_TRUE(MicroBatches(space).empty());
}

}  // namespace
}  // namespace dsat::search
