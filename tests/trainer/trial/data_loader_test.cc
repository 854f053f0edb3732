// Batches reach the ranks in the same order in every run.
// Any batch of any pass can be the first.
#include "dsat/trainer/data_loader.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "dsat/error.h"
#include "support/error_of.h"

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;
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
  EXPECT_THAT([&] { iterator.next(); }, ThrowsMessage<Error>(HasSubstr("after 2")));
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
      ThrowsMessage<Error>(AllOf(HasSubstr("3 samples"), HasSubstr("micro batch of 2"), HasSubstr("2 ranks"))));
}

DataLoaderOptions sampled_by(std::shared_ptr<const Sampler> sampler) {
  DataLoaderOptions options;
  options.sampler = std::move(sampler);
  return options;
}

TEST(DataLoader, TakesItsSamplesFromASampler) {
  DataLoader loader(numbers(10), 2, sampled_by(std::make_shared<SubsetRandomSampler>(Samples{3, 5, 7, 9})));
  EXPECT_EQ(loader.length({}), 2);
  EXPECT_THAT(take(loader, {0, 1, 7}, 2), UnorderedElementsAre(3, 5, 7, 9));
  EXPECT_EQ(take(loader, {0, 1, 7}, 8), take(loader, {0, 1, 7}, 8));
  EXPECT_NE(take(loader, {0, 1, 7}, 8), take(loader, {0, 1, 8}, 8));
}

TEST(DataLoader, DrawsSamplesByTheirWeights) {
  const std::vector<double> weights{0, 1, 3, 0};
  DataLoader loader(numbers(4), 100, sampled_by(std::make_shared<WeightedRandomSampler>(weights, 4000)));
  const Samples drawn = take(loader, {0, 1, 7}, 40);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 0) + std::count(drawn.begin(), drawn.end(), 3), 0);
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 2)), 3000, 150);
}

// A sampler of a user's own that goes wrong.
class Wrong : public Sampler {
 public:
  explicit Wrong(Samples given) : given_(std::move(given)) {}
  int64_t size() const override { return 3; }
  Samples order(uint64_t, int64_t) const override { return given_; }

 private:
  Samples given_;
};

TEST(DataLoader, RefusesWhatASamplerMustNotGive) {
  const auto complaint = [](Samples given) {
    DataLoader loader(numbers(4), 1, sampled_by(std::make_shared<Wrong>(std::move(given))));
    return error_of([&] { loader.pass({}, 0, 0); });
  };
  EXPECT_THAT(complaint({0, 1}), AllOf(HasSubstr("2 indices"), HasSubstr("size() is 3")));
  EXPECT_THAT(complaint({0, 1, 4}), AllOf(HasSubstr("the index 4"), HasSubstr("4 samples")));
  DataLoaderOptions both = sampled_by(std::make_shared<RandomSampler>(4));
  both.shuffle = true;
  EXPECT_THAT(error_of([&] { DataLoader(numbers(4), 1, both); }), HasSubstr("give one"));
  EXPECT_THAT(error_of([] { WeightedRandomSampler({1, -1}, 2); }), HasSubstr("weight is -1"));
  EXPECT_THAT(error_of([] { WeightedRandomSampler({0, 0}, 2); }), HasSubstr("above 0"));
}

// Samples of different lengths: sample i has i + 1 elements.
class Words : public Dataset {
 public:
  int64_t size() const override { return 4; }
  Tensors get(const std::vector<int64_t>& indices) const override {
    return {at::full({1, indices.at(0) + 1}, indices.at(0), at::kLong)};
  }
};

TEST(DataLoader, CollatesSamplesOfDifferentSizes) {
  DataLoaderOptions options;
  options.collate = [](const std::vector<Tensors>& samples) {
    at::Tensor batch = at::full({static_cast<int64_t>(samples.size()), 4}, -1, at::kLong);
    for (size_t i = 0; i < samples.size(); ++i) {
      batch[static_cast<int64_t>(i)].slice(0, 0, samples[i][0].size(0)).copy_(samples[i][0]);
    }
    return Tensors{batch};
  };
  DataLoader loader(std::make_shared<Words>(), 2, options);
  EXPECT_THAT(take(loader, {}, 1), ElementsAre(0, -1, -1, -1, 1, 1, -1, -1));
}

TEST(DataLoader, WorkersChangeNeitherOrderNorBatches) {
  DataLoaderOptions options;
  options.shuffle = true;
  options.num_workers = 3;
  DataLoader alone(numbers(50), 4, /*shuffle=*/true), helped(numbers(50), 4, options);
  EXPECT_EQ(take(alone, {1, 2, 7}, 30), take(helped, {1, 2, 7}, 30));
  EXPECT_EQ(take(alone, {1, 2, 7}, 9, /*skip=*/5), take(helped, {1, 2, 7}, 9, 5));
}

// Counts the samples that were asked for, and fails at one of them.
class Watched : public Dataset {
 public:
  explicit Watched(int64_t bad) : bad_(bad) {}
  int64_t size() const override { return 100; }
  Tensors get(const std::vector<int64_t>& indices) const override {
    if (indices.at(0) == bad_) throw Error("sample " + std::to_string(bad_) + " is gone");
    ++asked;
    return {at::full({1}, indices.at(0), at::kLong)};
  }
  mutable std::atomic<int64_t> asked{0};

 private:
  int64_t bad_;
};

TEST(DataLoader, WorkersStayWithinWhatTheyMayPrefetch) {
  DataLoaderOptions options;
  options.num_workers = 2;
  options.prefetch_factor = 3;
  const auto data = std::make_shared<Watched>(-1);
  {
    DataLoader loader(data, 1, options);
    BatchIterator iterator(loader, {}, /*repeat=*/false);
    iterator.next();
    iterator.next();
  }
  EXPECT_GE(data->asked, 2);
  EXPECT_LE(data->asked, 2 + 2 * 3);
}

TEST(DataLoader, AnErrorOfAWorkerComesInItsBatchsPlace) {
  DataLoaderOptions options;
  options.num_workers = 4;
  DataLoader loader(std::make_shared<Watched>(3), 1, options);
  BatchIterator iterator(loader, {}, /*repeat=*/false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(iterator.next().at(0).item<int64_t>(), i);
  EXPECT_THAT([&] { iterator.next(); }, ThrowsMessage<Error>(HasSubstr("sample 3")));
}

TEST(TensorDataset, RefusesTensorsOfDifferentLengths) {
  EXPECT_THAT(
      [] {
        TensorDataset({at::zeros({3}), at::zeros({2, 2})});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("tensor 1 has 2"), HasSubstr("tensor 0 has 3"))));
  EXPECT_THROW(TensorDataset({}), Error);
  EXPECT_THROW(TensorDataset({at::zeros({})}), Error);
}

}  // namespace
}  // namespace dsat::trainer
