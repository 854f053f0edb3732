// Where parameters and shards lie: every element has one owner and one place, whatever the partition.
// Small layouts, whose numbers can be counted by hand.
#include "layout/layout.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "layout/owned_ranges.h"
#include "zero/initial_values.h"

namespace dsat::trainer {
namespace {

// Groups of 10, 7 and 3 parameters.
Layout layout(int world_size) {
  return Layout({{spread("a", {2, 4}, 1), ones("b", {2})}, {zeros("c", {7})}, {spread("d", {3}, 1)}}, world_size);
}

TEST(LayoutTest, GroupsArePaddedToTheWorldSize) {
  const Layout l = layout(4);
  EXPECT_EQ(l.num_params(), 20);
  EXPECT_EQ(l.size(), 12 + 8 + 4);
  EXPECT_EQ(l.largest_group(), 12);
  EXPECT_EQ(l.groups()[1].begin, 12);
  EXPECT_EQ(l.groups()[0].parameters[1].begin, 8);
  EXPECT_EQ(layout(1).size(), 20);
}

TEST(PartitionTest, EveryElementHasOneOwnerAndOnePlace) {
  for (int world_size : {1, 2, 3, 5}) {
    const Layout l = layout(world_size);
    for (const Partition& p : {Partition::contiguous(l), Partition::by_group(l)}) {
      std::vector<std::vector<int>> seen(static_cast<size_t>(world_size),
                                         std::vector<int>(static_cast<size_t>(p.shard_size()), 0));
      int64_t at = 0;
      for (const Piece& piece : p.pieces()) {
        EXPECT_EQ(piece.begin, at);
        at += piece.size;
        for (int64_t i = 0; i < piece.size; ++i) {
          ++seen[static_cast<size_t>(piece.owner)][static_cast<size_t>(piece.shard_begin + i)];
        }
      }
      EXPECT_EQ(at, l.size());
      for (const auto& shard : seen) EXPECT_EQ(shard, std::vector<int>(shard.size(), 1));
    }
  }
}

TEST(PartitionTest, ARunIsCutAtItsOwners) {
  const Partition p = Partition::contiguous(layout(2));  // 10 + 8 + 4 = 22: 11 each
  const std::vector<Piece> pieces = p.pieces(9, 4);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].owner, 0);
  EXPECT_EQ(pieces[0].shard_begin, 9);
  EXPECT_EQ(pieces[0].size, 2);
  EXPECT_EQ(pieces[1].owner, 1);
  EXPECT_EQ(pieces[1].shard_begin, 0);
  EXPECT_EQ(pieces[1].size, 2);
  EXPECT_TRUE(p.pieces(5, 0).empty());
}

TEST(PartitionTest, ByGroupEveryRankHasAPartOfEachGroup) {
  const Partition p = Partition::by_group(layout(2));
  const std::vector<Piece> second = p.pieces(10, 8);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(second[0].owner, 0);
  EXPECT_EQ(second[1].owner, 1);
  EXPECT_EQ(second[0].shard_begin, 5);
  EXPECT_EQ(second[1].shard_begin, 5);
}

// Contiguous halves of 11: rank 0 ends within the second group, and the padding is nobody's.
TEST(OwnedRangesTest, ARankHasThePartsOfParametersInItsShard) {
  const Layout l = layout(2);
  const auto found = [&](int rank) {
    std::vector<std::vector<int64_t>> ranges;
    for (const OwnedRange& r : owned_ranges(l, Partition::contiguous(l), rank)) {
      ranges.push_back({r.parameter, r.begin, r.size, r.shard_begin});
    }
    return ranges;
  };
  EXPECT_EQ(found(0), (std::vector<std::vector<int64_t>>{{0, 0, 8, 0}, {1, 0, 2, 8}, {2, 0, 1, 10}}));
  EXPECT_EQ(found(1), (std::vector<std::vector<int64_t>>{{2, 1, 6, 0}, {3, 0, 3, 7}}));
}

TEST(InitialTest, ShardsHoldTheValuesOfTheWhole) {
  const Layout l = layout(2);
  std::vector<float> whole(static_cast<size_t>(l.size()), 0);
  fill_initial(l, Partition::replicated(l, 0), 0, 42, whole.data());
  EXPECT_EQ(whole[8], 1);   // ones
  EXPECT_EQ(whole[10], 0);  // zeros
  EXPECT_NE(whole[0], whole[1]);
  for (const Partition& p : {Partition::contiguous(l), Partition::by_group(l)}) {
    for (int rank : {0, 1}) {
      std::vector<float> shard(static_cast<size_t>(p.shard_size()), 0);
      fill_initial(l, p, rank, 42, shard.data());
      for (const Piece& piece : p.pieces()) {
        if (piece.owner != rank) continue;
        for (int64_t i = 0; i < piece.size; ++i) {
          EXPECT_EQ(shard[static_cast<size_t>(piece.shard_begin + i)], whole[static_cast<size_t>(piece.begin + i)]);
        }
      }
    }
  }
}

TEST(RandomTest, NumbersSpreadEvenlyAndDifferByStream) {
  const RandomStream stream(1, 2);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double u = stream.uniform(i);
    ASSERT_GE(u, -1);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.01);
  EXPECT_EQ(stream.bits(5), RandomStream(1, 2).bits(5));
  EXPECT_NE(stream.bits(5), RandomStream(1, 3).bits(5));
  EXPECT_NE(stream.bits(5), RandomStream(2, 2).bits(5));
  for (uint64_t i = 0; i < 100; ++i) EXPECT_LT(stream.below(i, 7), 7);
}

}  // namespace
}  // namespace dsat::trainer
