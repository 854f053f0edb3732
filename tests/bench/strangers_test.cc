// The families by someone who does not know the searcher: the same for a seed, finite, monotone where physics says so,
// each with a best that fits, and each with the one thing that it is about.
#include "search/strangers/strangers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "search/surfaces/measure.h"
#include "search/surfaces/optimum.h"

namespace dsat::bench {
namespace {

constexpr uint64_t kSeeds[] = {1, 2, 7};

// Points of all stages, lean and rich.
std::vector<SurfacePoint> points_of(const Surface& surface) {
  std::vector<SurfacePoint> points;
  for (SurfacePoint point; point.stage <= 3; ++point.stage) {
    for (const double bucket : {1e6, 5e8}) {
      point.reduce_bucket = bucket;
      point.overlap = bucket > 1e7;
      point.offload_optimizer = surface.offload_axis;
      points.push_back(point);
    }
  }
  return points;
}

std::vector<Surface> of_family(const std::string& name, uint64_t seed) {
  std::vector<Surface> some;
  for (const Surface& surface : strange_surfaces(seed, kStrangeEach)) {
    if (surface.family == "strange-" + name) some.push_back(surface);
  }
  EXPECT_EQ(some.size(), static_cast<size_t>(kStrangeEach)) << name;
  return some;
}

TEST(StrangeSurfaces, AreTheSameForASeedAndOthersForAnother) {
  const std::vector<Surface> once = strange_surfaces(2, 2), again = strange_surfaces(2, 2),
                             other = strange_surfaces(3, 2);
  ASSERT_EQ(once.size(), 2 * strange_families().size());
  std::set<std::string> names;
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(names.insert(once[i].name).second) << once[i].name;
    EXPECT_EQ(once[i].about, again[i].about);
    for (const SurfacePoint& point : points_of(once[i])) {
      EXPECT_EQ(once[i].truth(point).latency_s(), again[i].truth(point).latency_s()) << once[i].name;
      EXPECT_EQ(once[i].truth(point).peak_bytes, again[i].truth(point).peak_bytes) << once[i].name;
    }
    const Json config = once[i].base_config();
    EXPECT_EQ(measure(once[i], config, 4, 1).answer.metrics, measure(again[i], config, 4, 1).answer.metrics);
    EXPECT_NE(measure(once[i], config, 4, 1).answer.metrics, measure(other[i], config, 4, 1).answer.metrics);
  }
}

TEST(StrangeSurfaces, AreFiniteAndNeedMoreMemoryAndTimeForMoreSamples) {
  for (const uint64_t seed : kSeeds) {
    for (const Surface& surface : strange_surfaces(seed, kStrangeEach)) {
      // Padding may make one sample more cheaper; eight of them are a whole pad.
      for (SurfacePoint point : points_of(surface)) {
        double bytes = 0, seconds = 0;
        for (point.micro_batch = 8; point.micro_batch <= surface.max_micro_batch + 8; point.micro_batch += 8) {
          const Truth truth = surface.truth(point);
          ASSERT_TRUE(std::isfinite(truth.latency_s()) && std::isfinite(truth.peak_bytes)) << surface.name;
          EXPECT_GT(std::min({truth.forward_s, truth.backward_s, truth.step_s}), 0) << surface.name;
          EXPECT_GE(truth.peak_bytes, bytes) << surface.name << " at " << point.micro_batch;
          EXPECT_GE(truth.latency_s(), seconds * (1 - 1e-9)) << surface.name << " at " << point.micro_batch;
          EXPECT_LE(truth.reported_bytes, truth.peak_bytes) << surface.name;
          bytes = truth.peak_bytes;
          seconds = truth.latency_s();
        }
      }
    }
  }
}

TEST(StrangeSurfaces, HaveAnOwnConfigurationThatFitsAndABestThatIsFaster) {
  for (const uint64_t seed : kSeeds) {
    for (const Surface& surface : strange_surfaces(seed, kStrangeEach)) {
      config::Space space = surface.space();
      ASSERT_EQ(space.stages.size(), 4u) << surface.name;
      for (config::StageSpace& stage : space.stages) {
        for (config::Axis& axis : stage.axes) axis.values.resize(1);  // a corner of the space: the whole takes minutes
      }
      const double own = surface.throughput(point_of(surface.base_config()));
      const Optimum best = find_optimum(surface, space);
      EXPECT_GT(own, 0) << surface.name;
      EXPECT_GT(best.throughput, own) << surface.name;
      SurfacePoint beyond;
      beyond.stage = 3;
      beyond.reduce_bucket = 1e6;
      beyond.micro_batch = surface.max_micro_batch + 1;
      EXPECT_EQ(surface.throughput(beyond), 0) << surface.name;
    }
  }
}

TEST(Fabric, LargerAndMoreMessagesTakeLonger) {
  for (const int64_t ranks_per_node : {1, 8}) {
    Fabric fabric;
    fabric.ranks = 64;
    fabric.ranks_per_node = ranks_per_node;
    Fabric rings = fabric;
    rings.trees = false;
    double before_s = 0;
    for (double bytes = 1e3; bytes < 1e11; bytes *= 1.7) {
      const double once_s = all_reduce_s(fabric, bytes), ring_s = all_reduce_s(rings, bytes);
      EXPECT_GT(once_s, before_s);
      EXPECT_GT(ring_s, once_s * (1 - 1e-9));  // trees are there for small messages
      EXPECT_GT(ring_s, 1.5 * all_gather_s(fabric, bytes));
      EXPECT_GT(2 * all_reduce_s(fabric, bytes / 2), once_s);
      before_s = once_s;
    }
  }
  Fabric alone;
  alone.ranks = 1;
  EXPECT_EQ(all_reduce_s(alone, 1e9) + all_gather_s(alone, 1e9), 0);
}

TEST(OneANode, ASmallBucketIsSlower) {
  for (const Surface& surface : of_family("one-a-node", 7)) {
    SurfacePoint small, large;
    small.stage = large.stage = 2;
    small.reduce_bucket = 1e6;
    EXPECT_GT(surface.truth(small).backward_s, 1.01 * surface.truth(large).backward_s) << surface.name;
  }
}

TEST(LeanFits, TheDefaultsDoNotFitTheLargestMicroBatch) {
  for (const Surface& surface : of_family("lean-fits", 7)) {
    SurfacePoint point;
    point.stage = 3;
    point.micro_batch = surface.max_micro_batch - 2;
    EXPECT_EQ(surface.throughput(point), 0) << surface.name;
    point.reduce_bucket = 1e6;
    point.prefetch_bucket = 5e6;
    point.reuse_distance = point.sub_group = 1e8;
    EXPECT_GT(surface.throughput(point), 0) << surface.name;
  }
}

TEST(TileWaves, SomeLargerMicroBatchIsSlowerAtEveryStage) {
  for (const Surface& surface : of_family("tile-waves", 7)) {
    for (SurfacePoint point; point.stage <= 3; ++point.stage) {
      double best = 0, worst_drop = 0;
      for (point.micro_batch = 1; point.micro_batch <= surface.max_micro_batch; ++point.micro_batch) {
        const double speed = surface.throughput(point);
        if (speed <= 0) break;
        best = std::max(best, speed);
        worst_drop = std::max(worst_drop, 1 - speed / best);
      }
      EXPECT_GT(worst_drop, 0.02) << surface.name << " stage " << point.stage;
    }
  }
}

TEST(Drifting, TheMachineChangesWhatIsMeasuredAndNotTheTruth) {
  for (const Surface& surface : of_family("drifting", 7)) {
    const Json config = surface.base_config();
    const auto latency_at = [&](double now_s) {
      return measure(surface, config, 1, 0, true, now_s).answer.metrics.at("latency");
    };
    EXPECT_GT(std::abs(latency_at(4000) / latency_at(0) - 1), 0.01) << surface.name;
  }
}

// A reported latency is that of a step. Stages 0 and 1 reduce once in it, the others in every micro step.
TEST(Accumulation, MessagesWeighLessBelowStage2) {
  for (const Surface& surface : of_family("accumulation", 7)) {
    SurfacePoint point;
    point.stage = 1;
    const double once_s = surface.truth(point).backward_s;
    point.stage = 2;
    EXPECT_GT(surface.truth(point).backward_s, once_s) << surface.name;
    const Json config = surface.base_config();
    const double steps = config.at("gradient_accumulation_steps").get<double>();
    ASSERT_GT(steps, 1);
    const auto metrics = measure(surface, config, 1, 0).answer.metrics;
    const double phases = metrics.at("forward") + metrics.at("backward") + metrics.at("step");
    EXPECT_NEAR(metrics.at("latency") / phases, steps, 1e-6) << surface.name;
    EXPECT_NEAR(metrics.at("throughput") * metrics.at("latency") / 1e6, steps * static_cast<double>(surface.job.gpus),
                1e-6 * static_cast<double>(surface.job.gpus));
  }
}

}  // namespace
}  // namespace dsat::bench
