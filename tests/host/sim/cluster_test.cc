// The surface over a scenario: metrics that agree with each other, noise, out-of-memory.
#include "sim/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "scenarios.h"

namespace dsat::host::sim {
namespace {

using ::testing::HasSubstr;

SimulatedRun run(const Scenario& s, int samples, uint64_t seed = 1, bool model_info = false) {
  const Json config{{"train_micro_batch_size_per_gpu", samples}, {"gradient_accumulation_steps", 2},
                    {"train_batch_size", samples * 32},          {"bf16", {{"enabled", true}}},
                    {"optimizer", {{"type", "Adam"}}},           {"zero_optimization", {{"stage", 2}}}};
  return ClusterSurface(s).run({config, model_info, 16, seed});
}

TEST(ClusterSurface, MetricsAgreeWithEachOther) {
  const Json m = run(scenario(), 4).metrics;
  EXPECT_NEAR(m["throughput"].get<double>() * m["latency"].get<double>(), 128e6, 1);
  const double latency = 2 * (m["forward"].get<double>() + m["backward"].get<double>()) + m["step"].get<double>();
  EXPECT_NEAR(m["latency"].get<double>(), latency, 1e-6 * latency);
}

TEST(ClusterSurface, TheSeedDecidesTheNoise) {
  const Scenario s = scenario({{"noise", {{"relative", 0.02}}}});
  EXPECT_EQ(run(s, 4, 7).metrics, run(s, 4, 7).metrics);
  double sum = 0, squares = 0;
  constexpr int kRuns = 400;
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    const double forward = run(s, 4, seed).metrics["forward"].get<double>();
    sum += forward;
    squares += forward * forward;
  }
  const double mean = sum / kRuns;
  EXPECT_NEAR(std::sqrt(squares / kRuns - mean * mean) / mean, 0.02, 0.003);
}

TEST(ClusterSurface, ADisturbedTrialIsSlower) {
  const Scenario s = scenario({{"noise", {{"straggler_probability", 0.25}, {"straggler_slowdown", 1}}}});
  const double usual = run(scenario(), 4).metrics["latency"].get<double>();
  int slow = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) slow += run(s, 4, seed).metrics["latency"].get<double>() > 1.5 * usual;
  EXPECT_NEAR(slow, 100, 30);
}

TEST(ClusterSurface, WhatDoesNotFitRunsOutOfMemoryEarly) {
  const SimulatedRun fits = run(scenario(), 4);
  const SimulatedRun too_big = run(scenario(), 400);
  EXPECT_EQ(fits.outcome, Outcome::completed);
  EXPECT_LT(*fits.peak_bytes, 80e9);
  EXPECT_EQ(too_big.outcome, Outcome::out_of_memory);
  EXPECT_THAT(too_big.reason, HasSubstr("out of memory"));
  EXPECT_FALSE(too_big.peak_bytes);
  EXPECT_GT(too_big.seconds, 0);
}

TEST(ClusterSurface, TheModelInformationRunTellsTheModelsSize) {
  const SimulatedRun information = run(scenario(), 1, 1, true);
  EXPECT_NEAR(information.metrics["num_params"].get<double>(), 1.558e9, 1e6);
  EXPECT_GT(information.metrics["activation_mem_per_gpu"].get<double>(), 1e9);
  EXPECT_EQ(information.device_memory_bytes, 80000000000u);
}

}  // namespace
}  // namespace dsat::host::sim
