// The random numbers of plugins: the same for ever, and distributed as they should be.
#include "dsat/random.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace dsat {
namespace {

// These numbers are part of the contract: another generator would change every recorded search.
TEST(Random, TheSequenceNeverChanges) {
  Random random(42, 1, 2);
  const uint64_t first = random.next(), second = random.next();
  Random again(42, 1, 2);
  EXPECT_EQ(again.next(), first);
  EXPECT_EQ(again.next(), second);
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafu);  // splitmix64's published first output for seed 0
}

TEST(Random, SeedStreamAndSubstreamEachMatter) {
  std::set<uint64_t> firsts;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t stream = 0; stream < 8; ++stream) {
      for (uint64_t substream = 0; substream < 8; ++substream) firsts.insert(Random(seed, stream, substream).next());
    }
  }
  EXPECT_EQ(firsts.size(), 512u);
}

TEST(Random, UniformBelowIsUniform) {
  Random random(7);
  std::vector<int> count(10);
  for (int i = 0; i < 20000; ++i) ++count[random.uniform_below(10)];
  for (const int c : count) EXPECT_NEAR(c, 2000, 220);  // five standard deviations
}

TEST(Random, UniformBelowKeepsToItsRange) {
  Random random(7);
  for (const uint64_t n : {uint64_t{1}, uint64_t{3}, (uint64_t{1} << 63) + 1, UINT64_MAX}) {
    for (int i = 0; i < 100; ++i) EXPECT_LT(random.uniform_below(n), n);
  }
  EXPECT_THROW(random.uniform_below(0), Error);
}

TEST(Random, UniformIsBelowOne) {
  Random random(3);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double x = random.uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);
}

TEST(Random, BinomialHalfHasItsMeanAndVariance) {
  for (const uint64_t n : {uint64_t{1}, uint64_t{64}, uint64_t{100}, uint64_t{1} << 20}) {
    Random random(11, n);
    const int draws = 4000;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
      const uint64_t heads = random.binomial_half(n);
      ASSERT_LE(heads, n);
      const double off = static_cast<double>(heads) - static_cast<double>(n) / 2;
      sum += off;
      squares += off * off;
    }
    const double variance = static_cast<double>(n) / 4;
    EXPECT_NEAR(sum / draws, 0, 5 * std::sqrt(variance / draws)) << n;
    EXPECT_NEAR(squares / draws, variance, 0.15 * variance) << n;
  }
  EXPECT_EQ(Random(1).binomial_half(0), 0u);
}

}  // namespace
}  // namespace dsat
