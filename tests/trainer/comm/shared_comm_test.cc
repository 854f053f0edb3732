// The blocking operations on both transports, and the memory that ranks of one launcher share.
// Tensors are larger than a slot, so that an operation takes several rounds.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/shared_region.h"
#include "dsat/trainer/comm.h"
#include "trainer/on_ranks.h"

namespace dsat::trainer {
namespace {

using ::testing::HasSubstr;

// Several rounds, the last of them not full; fp32 elements.
constexpr int64_t kMany = static_cast<int64_t>(2 * SharedRegion::kSlotBytes / sizeof(float)) + 1001;

class TransportTest : public ::testing::TestWithParam<Transport> {};

INSTANTIATE_TEST_SUITE_P(Both, TransportTest, ::testing::Values(Transport::shared_memory, Transport::gloo),
                         [](const auto& info) {
                           return info.param == Transport::gloo ? std::string("Gloo") : std::string("SharedMemory");
                         });

at::Tensor numbers(int64_t size, double step, at::ScalarType dtype = at::kFloat) {
  return at::arange(size, at::TensorOptions().dtype(dtype)).mul_(step);
}

TEST_P(TransportTest, PartsReachAllRanks) {
  const RankResult result = on_ranks(
      3,
      [](Comm& comm) -> std::string {
        for (const int64_t size : {int64_t{1}, kMany}) {
          std::vector<at::Tensor> parts;
          for (int rank = 0; rank < 3; ++rank) {
            parts.push_back(rank == comm.rank() ? numbers(size, rank + 1) : at::full({size}, -1.0f));
          }
          comm.all_gather(parts);
          for (int rank = 0; rank < 3; ++rank) {
            if (!parts[static_cast<size_t>(rank)].equal(numbers(size, rank + 1))) {
              return std::to_string(size) + " elements of rank " + std::to_string(rank);
            }
          }
        }
        return "";
      },
      GetParam());
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST_P(TransportTest, EachSumReachesItsRank) {
  const RankResult result = on_ranks(
      3,
      [](Comm& comm) -> std::string {
        const double mine = comm.rank() + 1;
        const at::Tensor for_all = numbers(kMany, mine, at::kDouble), nothing = numbers(0, 1);
        // Alone in its last rounds: more than Gloo's ranks exchange in one.
        const at::Tensor long_one = at::full({3'000'001}, mine);
        std::vector<Summand> summands = {{for_all}, {nothing, 1}};
        // Sizes that differ, in an order that is not the ranks'; two of them are for rank 2.
        const std::vector<int> roots = {2, 0, 1, 2};
        for (size_t i = 0; i < roots.size(); ++i) {
          summands.push_back({numbers(kMany / 8 * static_cast<int64_t>(2 * i + 1), mine), roots[i]});
        }
        summands.push_back({long_one, 1});
        comm.sum(summands);
        if (!for_all.equal(numbers(kMany, 6, at::kDouble))) return "for all";
        if (comm.rank() == 1 && !long_one.equal(at::full({3'000'001}, 6.0))) return "the long one";
        for (size_t i = 0; i < roots.size(); ++i) {
          const at::Tensor& sum = summands[i + 2].tensor;
          if (roots[i] == comm.rank() && !sum.allclose(numbers(sum.numel(), 6))) return "sum " + std::to_string(i);
        }
        return "";
      },
      GetParam());
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

// 2^24 + 1 + 1 is 2^24 in fp32 from left to right, and 2^24 + 2 in the other order.
TEST(SharedCommTest, SumsAreTakenInTheOrderOfTheRanks) {
  const RankResult result = on_ranks(3, [](Comm& comm) -> std::string {
    const float large = 16777216;
    const at::Tensor last = at::full({5}, comm.rank() == 2 ? large : 1.0f),
                     first = at::full({5}, comm.rank() == 0 ? large : 1.0f);
    comm.sum({{last}, {first}});
    if (!last.equal(at::full({5}, large + 2))) return "the large one last";
    return first.equal(at::full({5}, large)) ? "" : "the large one first";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(SharedCommTest, ARankThatHasEndedIsNamed) {
  const RankResult result = without_rank_1([](Comm& comm) { comm.barrier(); });
  EXPECT_EQ(result.kind, FailureKind::error);
  EXPECT_THAT(result.message, HasSubstr("rank 1 has"));
}

TEST(SharedCommTest, GroupsBeyondThePlacesTalkAllTheSame) {
  const RankResult result = on_ranks(2, [](Comm& comm) -> std::string {
    std::vector<std::unique_ptr<Comm>> groups;
    for (int i = 0; i <= SharedRegion::kPlaces; ++i) {
      groups.push_back(comm.split({1, 0}));
      const double sum = sum_over_ranks(*groups.back(), {static_cast<double>(comm.rank() + i)})[0];
      if (sum != 1 + 2 * i) return "group " + std::to_string(i);
    }
    return "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(SharedRegionTest, APlaceIsFreeAgainWhenAllHaveLeft) {
  SharedRegion region(2);
  ASSERT_EQ(SharedRegion::of_this_process(), &region);
  std::vector<int> places;
  for (int i = 0; i < SharedRegion::kPlaces; ++i) places.push_back(region.take_place(2));
  EXPECT_EQ(region.take_place(2), SharedRegion::kNoPlace);
  region.counter(places[3], 1).value = 7;
  region.leave_place(places[3]);
  EXPECT_EQ(region.take_place(2), SharedRegion::kNoPlace);
  region.leave_place(places[3]);
  EXPECT_EQ(region.take_place(2), places[3]);
  EXPECT_EQ(region.counter(places[3], 1).value, 0u);
  EXPECT_NE(region.slot(places[3], 1, 1), region.slot(places[3], 1, 0));
}

}  // namespace
}  // namespace dsat::trainer
