// The scenarios of bench/search: what they promise to those who are measured on them.
#include "search/surfaces/surfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/surfaces/measure.h"
#include "search/surfaces/optimum.h"

namespace dsat::bench {
namespace {

// Memory that grows by a line, and time with half its speed at two samples.
Surface simple_surface() {
  Surface surface = six_surfaces(1).front();
  surface.script_limit = 0;
  surface.noise = SurfaceNoise();
  surface.physics = [](const SurfacePoint& point) {
    const double samples = static_cast<double>(point.micro_batch);
    Truth truth;
    truth.forward_s = 0.01 * (samples + 2);
    truth.backward_s = 0.02 * (samples + 2) * (point.overlap ? 0.9 : 1) + 1e6 / point.reduce_bucket;
    truth.step_s = 0.01 * point.stage;
    truth.peak_bytes = 4e9 + 0.2e9 * samples + 2 * point.reduce_bucket;
    return truth;
  };
  return surface;
}

TEST(Surfaces, AnotherSeedOrRepetitionIsOtherNoiseAroundTheTruth) {
  const Surface surface = simple_surface();
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
  const Surface surface = simple_surface();
  Json config = surface.base_config();
  config["train_micro_batch_size_per_gpu"] = surface.max_micro_batch;
  EXPECT_EQ(measure(surface, config, 1, 0).answer.outcome, Outcome::out_of_memory);
  EXPECT_EQ(surface.throughput(point_of(config)), 0);
}

// The best of a small space by way of measured configurations instead of points.
TEST(Optimum, IsTheBestOfASmallSpace) {
  Surface surface = simple_surface();
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
  Surface surface = simple_surface();
  surface.max_micro_batch = 64;
  config::Space space;
  space.stages = {{1, {}}};
  const int64_t plain = find_optimum(surface, space).overrides.at("train_micro_batch_size_per_gpu");
  ASSERT_GT(plain, 4);
  surface.twists.push_back([plain](const TrainingJob& job, const SurfacePoint& point, Truth& truth) {
    if (point.micro_batch >= 2 && point.micro_batch < plain) truth.peak_bytes += job.device_memory;
  });
  EXPECT_EQ(find_optimum(surface, space).overrides.at("train_micro_batch_size_per_gpu"), plain);
}

TEST(Regret, IsTheShareOfTheOptimumThatIsMissing) {
  EXPECT_DOUBLE_EQ(regret_percent(90, 100), 10);
  EXPECT_DOUBLE_EQ(regret_percent(0, 100), 100);
  EXPECT_DOUBLE_EQ(regret_percent(101, 100), 0);
}

}  // namespace
}  // namespace dsat::bench
