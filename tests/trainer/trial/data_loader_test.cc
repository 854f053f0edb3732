// Batches reach the ranks in the same order in every run.
// Any batch of any pass can be the first.
#include "dsat/trainer/data_loader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "dsat/error.h"

namespace dsat::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Samples = std::vector<int64_t>;

std::shared_ptr<TensorDataset> numbers(int64_t size) {
  return std::make_shared<TensorDataset>(Tensors{at::arange(size, at::kLong)});
}

// The samples of `count` micro batches, the first `skip` left out.
Samples take(Loader& loader, Shard shard, int64_t count, int64_t skip = 0) {
  BatchIterator iterator(loader, shard, /*repeat=*/true, skip);
  Samples samples;
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor batch = iterator.next().at(0);
    samples.insert(samples.end(), batch.data_ptr<int64_t>(), batch.data_ptr<int64_t>() + batch.numel());
  }
  return samples;
}

TEST(DataLoader, GivesSamplesInTheirOrder) {
  DataLoader loader(numbers(5), 2);
  EXPECT_THAT(take(loader, {}, 2), ElementsAre(0, 1, 2, 3));
}

TEST(DataLoader, FillsTheLastBatchUpOrLeavesItOut) {
  DataLoader filled(numbers(5), 2), dropped(numbers(5), 2, false, /*drop_last=*/true);
  EXPECT_EQ(filled.length({}), 3);
  EXPECT_EQ(dropped.length({}), 2);
  EXPECT_THAT(take(filled, {}, 4), ElementsAre(0, 1, 2, 3, 4, 0, 0, 1));
  EXPECT_THAT(take(dropped, {}, 3), ElementsAre(0, 1, 2, 3, 0, 1));
}

TEST(DataLoader, SharesMicroBatchesOutRankByRank) {
  DataLoader loader(numbers(8), 2);
  EXPECT_THAT(take(loader, {0, 2, 0}, 2), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(take(loader, {1, 2, 0}, 2), ElementsAre(2, 3, 6, 7));
}

TEST(DataLoader, ShufflesAlikeInEveryRunAndAnewInEveryEpoch) {
  DataLoader first(numbers(64), 4, /*shuffle=*/true), second(numbers(64), 4, true);
  const Samples epochs = take(first, {0, 1, 7}, 32);
  EXPECT_EQ(epochs, take(second, {0, 1, 7}, 32));
  EXPECT_NE(epochs, take(second, {0, 1, 8}, 32));
  const Samples one(epochs.begin(), epochs.begin() + 64), two(epochs.begin() + 64, epochs.end());
  EXPECT_NE(one, two);
  EXPECT_EQ(std::set<int64_t>(one.begin(), one.end()).size(), 64u);
  EXPECT_EQ(std::set<int64_t>(two.begin(), two.end()).size(), 64u);
}

TEST(DataLoader, ShufflesTheSameForAnyNumberOfRanks) {
  DataLoader loader(numbers(64), 4, true);
  const Samples alone = take(loader, {0, 1, 7}, 2);
  Samples together = take(loader, {0, 2, 7}, 1);
  const Samples other = take(loader, {1, 2, 7}, 1);
  together.insert(together.end(), other.begin(), other.end());
  EXPECT_EQ(alone, together);
}

TEST(DataLoader, ResumesAtAnyMicroBatch) {
  DataLoader loader(numbers(10), 2, true);
  const Samples all = take(loader, {0, 1, 3}, 12);
  EXPECT_EQ(take(loader, {0, 1, 3}, 5, /*skip=*/7), Samples(all.begin() + 14, all.end()));
  EXPECT_EQ(take(loader, {0, 1, 3}, 7, /*skip=*/5), Samples(all.begin() + 10, all.end()));
}

TEST(BatchIterator, EndsWithThePassUnlessItRepeats) {
  DataLoader loader(numbers(4), 2);
  BatchIterator iterator(loader, {}, /*repeat=*/false);
  iterator.next();
  iterator.next();
  EXPECT_THAT([&] { iterator.next(); }, ThrowsMessage<Error>(HasSubstr("at its end after 2")));
  EXPECT_EQ(iterator.taken(), 2);
}

TEST(BatchIterator, OfARankWithoutALoaderSaysSo) {
  BatchIterator iterator;
  EXPECT_THAT([&] { iterator.next(); }, ThrowsMessage<Error>(HasSubstr("should_build_data_loader")));
}

TEST(DataLoader, RefusesWhatMakesNoBatches) {
  EXPECT_THROW(DataLoader(nullptr, 1), Error);
  EXPECT_THROW(DataLoader(numbers(0), 1), Error);
  EXPECT_THROW(DataLoader(numbers(1), 0), Error);
  EXPECT_THAT(
      [] {
        DataLoader(numbers(3), 2, false, true).length({0, 2, 0});
      },
      ThrowsMessage<Error>(HasSubstr("3 samples are fewer than a micro batch of 2 on each of 2 ranks")));
}

TEST(TensorDataset, RefusesTensorsOfDifferentLengths) {
  EXPECT_THAT(
      [] {
        TensorDataset({at::zeros({3}), at::zeros({2, 2})});
      },
      ThrowsMessage<Error>(HasSubstr("tensor 1 has 2 samples, tensor 0 has 3")));
  EXPECT_THROW(TensorDataset({}), Error);
  EXPECT_THROW(TensorDataset({at::zeros({})}), Error);
}

}  // namespace
}  // namespace dsat::trainer
