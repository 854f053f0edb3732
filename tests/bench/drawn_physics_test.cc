// The families whose forms of physics are drawn: DeepSpeed's allocations, waves, noise, halves, and seeds.
// Every surface of two seeds is checked, and the forms alone where a property belongs to one of them.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "search/surfaces/draw_job.h"
#include "search/surfaces/measure.h"
#include "search/surfaces/optimum.h"
#include "search/surfaces/surfaces.h"

namespace dsat::bench {
namespace {

std::vector<Surface> drawn_surfaces(uint64_t seed) {
  std::vector<Surface> all = six_surfaces(seed);
  for (const auto& some : {job_surfaces(seed, 20), odd_surfaces(seed)}) all.insert(all.end(), some.begin(), some.end());
  return all;
}

Surface named(const std::vector<Surface>& surfaces, const std::string& name) {
  for (const Surface& surface : surfaces) {
    if (surface.name == name) return surface;
  }
  throw Error("no surface " + name);
}

TEST(DrawnSurfaces, AreTheSameForASeedAndOthersForAnother) {
  const std::vector<Surface> once = drawn_surfaces(2), again = drawn_surfaces(2), other = drawn_surfaces(3);
  ASSERT_EQ(once.size(), 38u);
  for (size_t i = 0; i < once.size(); ++i) {
    SurfacePoint point;
    point.stage = 3;
    point.micro_batch = 2;
    EXPECT_EQ(once[i].truth(point).latency_s(), again[i].truth(point).latency_s()) << once[i].name;
    EXPECT_NE(once[i].truth(point).latency_s(), other[i].truth(point).latency_s()) << once[i].name;
    EXPECT_NE(once[i].id, other[i].id);
  }
}

TEST(DrawnSurfaces, HaveNamesAndNoiseOfTheirOwn) {
  std::set<std::string> names;
  std::set<uint64_t> ids;
  for (const Surface& surface : drawn_surfaces(1)) {
    EXPECT_TRUE(names.insert(surface.name).second) << surface.name;
    EXPECT_TRUE(ids.insert(surface.id).second) << surface.name;
  }
}

TEST(DrawnSurfaces, CanBeProfiledAndHaveACeiling) {
  for (const uint64_t seed : {1, 2}) {
    for (const Surface& surface : drawn_surfaces(seed)) {
      Json config = surface.base_config();
      config["zero_optimization"]["stage"] = 3;
      EXPECT_GT(surface.throughput(point_of(config)), 0) << surface.name;
      SurfacePoint beyond;
      beyond.stage = 3;
      beyond.reduce_bucket = 1e6;
      beyond.micro_batch = surface.max_micro_batch + 1;
      EXPECT_EQ(surface.throughput(beyond), 0) << surface.name;
      EXPECT_GE(surface.space().stages.size(), 4u);
    }
  }
}

TEST(DrawnSurfaces, MemoryGrowsWithTheMicroBatchExceptWhereAnAlgorithmTakesMore) {
  for (const Surface& surface : drawn_surfaces(1)) {
    if (surface.name == "odd-algorithms" || surface.name == "odd-anything" || surface.name == "six-convolutions")
      continue;
    for (int stage = 0; stage <= 3; ++stage) {
      SurfacePoint point;
      point.stage = stage;
      double before = 0;
      for (point.micro_batch = 1; point.micro_batch <= surface.max_micro_batch; ++point.micro_batch) {
        const double peak = surface.truth(point).peak_bytes;
        EXPECT_GE(peak, before) << surface.name << " stage " << stage << " micro batch " << point.micro_batch;
        before = peak;
      }
    }
  }
}

// A result may leave out blocks and fragments, never more: what it reports is the memory that decides whether it fits.
TEST(DrawnSurfaces, ReportTheMemoryThatTheyNeed) {
  for (const uint64_t seed : {1, 2, 7}) {
    for (const Surface& surface : drawn_surfaces(seed)) {
      for (const int64_t micro_batch : {1, 4, 16}) {
        SurfacePoint point;
        point.stage = 3;
        point.micro_batch = micro_batch;
        const Truth truth = surface.truth(point);
        const double reported = truth.reported_bytes > 0 ? truth.reported_bytes : truth.peak_bytes;
        EXPECT_LE(reported, truth.peak_bytes * 1.001) << surface.name << " of seed " << seed;
        EXPECT_GE(reported, truth.peak_bytes * 0.6) << surface.name << " of seed " << seed;
      }
    }
  }
}

TEST(DrawnSurfaces, HalvesDifferInTheirPeaksAlone) {
  for (const Surface& surface : drawn_surfaces(1)) {
    Json config = surface.base_config();
    for (const int64_t micro_batch : {int64_t{1}, surface.max_micro_batch / 2, surface.max_micro_batch + 1}) {
      config["train_micro_batch_size_per_gpu"] = std::max<int64_t>(1, micro_batch);
      const SurfaceTrial with = measure(reporting(surface), config, 4, 1),
                         without = measure(silent(surface), config, 4, 1);
      EXPECT_EQ(with.answer.outcome, without.answer.outcome);
      EXPECT_EQ(with.answer.metrics, without.answer.metrics);
      EXPECT_EQ(with.duration_s, without.duration_s);
      EXPECT_EQ(with.answer.peak_bytes.has_value(), with.answer.outcome == Outcome::completed);
      EXPECT_FALSE(without.answer.peak_bytes.has_value());
    }
  }
}

struct Spread {
  double mean = 0, deviation = 0;
};
Spread spread_of(const Surface& surface, const char* metric, bool alone) {
  constexpr int kDraws = 4000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const SurfaceTrial trial = measure(surface, surface.base_config(), 1, static_cast<uint64_t>(i), alone);
    const double value = std::log(trial.answer.metrics.at(metric));
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean)};
}

TEST(DrawnNoise, IsAsWideAsItsTrialAndWiderForAPhase) {
  Surface surface = six_surfaces(1).front();
  surface.noise = {};
  surface.noise.trial = 0.015;
  const double truth = surface.throughput(point_of(surface.base_config()));
  const Spread speed = spread_of(surface, "throughput", true);
  EXPECT_NEAR(speed.mean, std::log(truth), 0.001);
  EXPECT_NEAR(speed.deviation, 0.015, 0.001);
  // To first order in the noise of the three, less that of their sum.
  const Truth phases = surface.truth(point_of(surface.base_config()));
  const double forward = phases.forward_s / phases.latency_s(), backward = phases.backward_s / phases.latency_s();
  const double step = phases.step_s / phases.latency_s();
  const auto width = [](double of_forward, double of_backward, double of_step) {
    return 0.015 *
           std::sqrt(1 + std::pow(1.5 * of_forward, 2) + std::pow(1.5 * of_backward, 2) + std::pow(3 * of_step, 2));
  };
  EXPECT_NEAR(spread_of(surface, "forward", true).deviation, width(1 - forward, backward, step), 0.002);
  EXPECT_NEAR(spread_of(surface, "step", true).deviation, width(forward, backward, 1 - step), 0.003);
}

// As in what the host takes from DeepSpeed's log.
TEST(DrawnNoise, PhasesSumToTheLatency) {
  for (const Surface& surface : drawn_surfaces(1)) {
    Json config = surface.base_config();
    config["zero_optimization"]["stage"] = 3;
    const auto metrics = measure(surface, config, 1, 0).answer.metrics;
    const double sum = metrics.at("forward") + metrics.at("backward") + metrics.at("step");
    EXPECT_NEAR(sum / metrics.at("latency"), 1, 1e-9) << surface.name;
  }
}

TEST(DrawnNoise, OfStepsIsAsWideAndReported) {
  Surface surface = six_surfaces(1).front();
  surface.noise = {};
  surface.noise.trial = 0.08;
  surface.noise.steps = 3;
  const double truth = surface.throughput(point_of(surface.base_config()));
  const Spread speed = spread_of(surface, "throughput", true);
  EXPECT_NEAR(speed.mean, std::log(truth), 0.005);
  EXPECT_NEAR(speed.deviation, 0.08, 0.005);
  const auto metrics = measure(surface, surface.base_config(), 1, 0).answer.metrics;
  EXPECT_EQ(metrics.at("latency_steps"), 3);
  EXPECT_GT(metrics.at("latency_spread"), 0.001);
  EXPECT_LT(metrics.at("latency_spread"), 0.4);
}

TEST(DrawnNoise, StragglersAndNeighboursSlowATrialDown) {
  Surface surface = six_surfaces(1).front();
  surface.noise = {};
  surface.noise.trial = 1e-6;
  const double truth = std::log(surface.throughput(point_of(surface.base_config())));
  surface.noise.interference = 0.04;
  EXPECT_NEAR(spread_of(surface, "throughput", true).mean, truth, 1e-4);
  EXPECT_NEAR(spread_of(surface, "throughput", false).mean, truth - 0.02, 2e-3);
  surface.noise.straggler_chance = 0.05;
  EXPECT_NEAR(spread_of(surface, "throughput", true).mean, truth - 0.05 * 0.09, 2e-3);
}

TEST(DrawnNoise, HasOneOfThreeWidths) {
  std::set<double> widths;
  for (const Surface& surface : drawn_surfaces(1)) widths.insert(surface.noise.trial);
  EXPECT_EQ(widths, (std::set<double>{0.005, 0.015, 0.03}));
}

TEST(ComputeForm, WavesMakeAStaircase) {
  ComputeForm form;
  form.saturation = Saturation::roofline;
  form.half = 1;
  form.multiprocessors = 84;
  form.kernels = {{1, 3}};
  EXPECT_NEAR(forward_compute_s(form, 56), 2 * forward_compute_s(form, 28), 1e-9);
  EXPECT_NEAR(forward_compute_s(form, 29), forward_compute_s(form, 56), 1e-9);
  EXPECT_NEAR(forward_compute_s(form, 1), forward_compute_s(form, 28), 1e-9);
}

TEST(ComputeForm, EveryShapeGainsWithTheMicroBatch) {
  for (const Saturation shape :
       {Saturation::hyperbola, Saturation::hill, Saturation::exponential, Saturation::power, Saturation::roofline}) {
    ComputeForm form;
    form.saturation = shape;
    form.half = 9;
    form.exponent = 0.5;
    for (int64_t micro_batch = 1; micro_batch < 200; ++micro_batch) {
      const double now_s = forward_compute_s(form, micro_batch), next_s = forward_compute_s(form, micro_batch + 1);
      EXPECT_GE(next_s, now_s * (1 - 1e-12));
      EXPECT_LE(next_s / static_cast<double>(micro_batch + 1), now_s / static_cast<double>(micro_batch) * (1 + 1e-12));
    }
  }
}

TEST(DrawnSurfaces, SomeAreBestWellBelowTheirCeiling) {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<Surface> surfaces = odd_surfaces(seed);
    for (const char* name : {"odd-waves", "odd-throttle"}) {
      const Surface surface = named(surfaces, name);
      const Optimum optimum = find_optimum(surface, surface.space());
      const int64_t best = optimum.overrides.at("train_micro_batch_size_per_gpu");
      EXPECT_LT(best, 0.9 * static_cast<double>(surface.max_micro_batch - 8)) << name << ", seed " << seed;
    }
  }
}

TEST(LinkForm, TakesTheFastestProtocolAndSmallMessagesCostMore) {
  LinkForm link;
  const double plain_s = collective_s(link, 1e4);
  link.hop_s *= 0.5;
  EXPECT_LT(collective_s(link, 1e4), plain_s);
  link.protocols.push_back({8, 1});
  const double with_slow_s = collective_s(link, 1e4);
  link.protocols.pop_back();
  EXPECT_EQ(collective_s(link, 1e4), with_slow_s);
  EXPECT_GT(10 * collective_s(link, 1e6), collective_s(link, 1e7));
  link.congested_bytes = 1e7;
  link.congestion = 0.1;
  EXPECT_GT(collective_s(link, 1e9), 100 * collective_s(link, 1e7));
  EXPECT_EQ(collective_s(link, 0), 0);
}

// docs/real-deepspeed.md, Memory.
struct Allocations {
  ModelForm model;
  MemoryForm memory;
  SurfacePoint point;
  Allocations() {
    memory.block_bytes = 1;
    point.reduce_bucket = 5e8;
    point.micro_batch = 4;
  }
  double peak(int stage) {
    point.stage = stage;
    return peak_memory(model, memory, 4, point).needed_bytes;
  }
};

TEST(MemoryForm, TheReduceBucketIsWholeAndDoubledByOverlapAtStages1And2) {
  for (const int stage : {1, 2, 3}) {
    Allocations job;
    job.model.params = job.model.trained = 1e8;
    job.memory.early_copy = 0;
    const double plain = job.peak(stage);
    job.point.reduce_bucket = 2e9;
    EXPECT_NEAR(job.peak(stage) - plain, 2 * 1.5e9, 1e3) << stage;
    job.point.overlap = true;
    EXPECT_NEAR(job.peak(stage) - plain, stage == 3 ? 2 * 1.5e9 : 2 * 1.5e9 + 2 * 2e9, 1e3) << stage;
  }
}

TEST(MemoryForm, TheAllgatherBucketAllocatesNothing) {
  Allocations job;
  for (const int stage : {0, 1, 2, 3}) {
    job.point.allgather_bucket = 1e6;
    const double plain = job.peak(stage);
    job.point.allgather_bucket = 5e9;
    EXPECT_EQ(job.peak(stage), plain);
  }
}

TEST(MemoryForm, AtStage3TheReuseDistanceKeepsParametersGathered) {
  Allocations job;
  const double kept = job.peak(3);
  job.point.reuse_distance = 0;
  EXPECT_NEAR(kept - job.peak(3), 2 * 5e8 * 0.75, 1e3);
}

TEST(MemoryForm, AThresholdAboveTheTrainedMatricesKeepsNoFrozenOnesGathered) {
  ModelForm model;
  model.params = 7e9;
  model.trained = 3e7;
  model.matrix_size = 1.5e5;
  model.frozen_matrix_size = 1.6e7;
  EXPECT_EQ(persistent_elements(model, 1e5), model.small_total);
  EXPECT_EQ(persistent_elements(model, 1e6), model.small_total + model.trained);
  EXPECT_EQ(persistent_elements(model, 1e8), model.params);
}

TEST(MemoryForm, FewTrainedParametersHaveFewStates) {
  Allocations job;
  job.point.reduce_bucket = 1e6;
  const double all = job.peak(1);
  job.model.trained = 1e6;
  EXPECT_LT(job.peak(1), all - 12 * 0.99e9 / 4 + 1);
}

TEST(ScriptLimit, FailsWithMemoryLeft) {
  const std::vector<Surface> six = six_surfaces(1);
  const Surface surface = named(six, "six-convolutions");
  Json config = surface.base_config();
  config["zero_optimization"]["reduce_bucket_size"] = 1000000;
  config["train_micro_batch_size_per_gpu"] = surface.script_limit;
  EXPECT_EQ(measure(surface, config, 1, 0).answer.outcome, Outcome::completed);
  config["train_micro_batch_size_per_gpu"] = surface.script_limit + 1;
  const SurfaceTrial trial = measure(surface, config, 1, 0);
  EXPECT_EQ(trial.answer.outcome, Outcome::failed);
  EXPECT_NE(trial.answer.reason.find("151 samples"), std::string::npos);
  EXPECT_EQ(surface.throughput(point_of(config)), 0);
}

}  // namespace
}  // namespace dsat::bench
