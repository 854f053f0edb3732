// The scenarios of bench/search: what they promise to those who are measured on them.
// Every family of surfaces is checked, the held-back ones too.
#include "search/surfaces/surfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/surfaces/measure.h"
#include "search/surfaces/optimum.h"
#include "search/surfaces/twists.h"

namespace dsat::bench {
namespace {

std::vector<Surface> every_surface() {
  std::vector<Surface> all = classic_surfaces();
  for (const auto& some : {zero_surfaces(30'000, 14), other_surfaces(), held_back_surfaces()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(Surfaces, AreTheSameEveryTime) {
  const std::vector<Surface> once = every_surface(), again = every_surface();
  ASSERT_EQ(once.size(), again.size());
  for (size_t i = 0; i < once.size(); ++i) {
    Json config = once[i].base_config();
    config["train_micro_batch_size_per_gpu"] = 3;
    const SurfaceTrial a = measure(once[i], config, 5, 0), b = measure(again[i], config, 5, 0);
    EXPECT_EQ(a.answer.metrics, b.answer.metrics) << once[i].name;
    EXPECT_EQ(a.duration_s, b.duration_s) << once[i].name;
  }
}

TEST(Surfaces, HaveNamesOfTheirOwnAndNoiseOfTheirOwn) {
  std::set<std::string> names;
  std::set<uint64_t> ids;
  for (const Surface& surface : every_surface()) {
    EXPECT_TRUE(names.insert(surface.name).second) << surface.name;
    EXPECT_TRUE(ids.insert(surface.id).second) << surface.name;
    EXPECT_FALSE(surface.about.empty()) << surface.name;
  }
}

TEST(Surfaces, CanBeProfiledAtTheHighestStage) {
  for (const Surface& surface : every_surface()) {
    Json config = surface.base_config();
    config["zero_optimization"]["stage"] = 3;
    EXPECT_GT(surface.throughput(point_of(config)), 0) << surface.name;
  }
}

TEST(Surfaces, AnotherSeedOrRepetitionIsOtherNoiseAroundTheTruth) {
  const Surface surface = classic_surfaces().front();
  const Json config = surface.base_config();
  const double truth = surface.throughput(point_of(config));
  const auto throughput = [&](uint64_t seed, uint64_t repetition) {
    return measure(surface, config, seed, repetition).answer.metrics.at("throughput");
  };
  EXPECT_EQ(throughput(1, 0), throughput(1, 0));
  EXPECT_NE(throughput(1, 0), throughput(2, 0));
  EXPECT_NE(throughput(1, 0), throughput(1, 1));
  double sum = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) sum += throughput(seed, 0);
  EXPECT_NEAR(sum / 400, truth, 0.005 * truth);
}

TEST(Surfaces, TooMuchMemoryIsAnOutOfMemoryTrial) {
  const Surface surface = classic_surfaces().front();
  Json config = surface.base_config();
  config["train_micro_batch_size_per_gpu"] = surface.max_micro_batch;
  EXPECT_EQ(measure(surface, config, 1, 0).answer.outcome, Outcome::out_of_memory);
  EXPECT_EQ(surface.throughput(point_of(config)), 0);
}

// The best of a small space by way of measured configurations instead of points.
TEST(Optimum, IsTheBestOfASmallSpace) {
  Surface surface = classic_surfaces()[1];
  surface.max_micro_batch = 40;
  config::Space space;
  space.stages = {{1, {{"zero_optimization.reduce_bucket_size", {1000000, 500000000}}}},
                  {2, {{"zero_optimization.overlap_comm", {true, false}}}}};
  const Optimum found = find_optimum(surface, space);
  double best = 0;
  for (const config::StageSpace& stage : space.stages) {
    for (size_t choice = 0; choice < 2; ++choice) {
      for (int64_t micro_batch = 1; micro_batch <= 40; ++micro_batch) {
        Json config = surface.base_config();
        testing::merge(config, config::overrides(stage, {choice}, micro_batch));
        best = std::max(best, surface.throughput(point_of(config)));
      }
    }
  }
  EXPECT_GT(best, 0);
  EXPECT_DOUBLE_EQ(found.throughput, best);
  Json config = surface.base_config();
  testing::merge(config, found.overrides);
  EXPECT_DOUBLE_EQ(surface.throughput(point_of(config)), best);
}

TEST(Optimum, LooksPastAGapInTheMemory) {
  Surface surface = classic_surfaces().front();
  surface.max_micro_batch = 64;
  config::Space space;
  space.stages = {{1, {}}};
  const int64_t plain = find_optimum(surface, space).overrides.at("train_micro_batch_size_per_gpu");
  ASSERT_GT(plain, 4);
  surface.twists.push_back(needs_workspace_between(2, plain, 1.0, 1.0));
  EXPECT_EQ(find_optimum(surface, space).overrides.at("train_micro_batch_size_per_gpu"), plain);
}

TEST(Regret, IsTheShareOfTheOptimumThatIsMissing) {
  EXPECT_DOUBLE_EQ(regret_percent(90, 100), 10);
  EXPECT_DOUBLE_EQ(regret_percent(0, 100), 100);
  EXPECT_DOUBLE_EQ(regret_percent(101, 100), 0);
}

}  // namespace
}  // namespace dsat::bench
