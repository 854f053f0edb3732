// What a choice is worth, from trials whose metric is known: one key matters, the others do not.
#include "finals/effects.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dsat/random.h"

namespace dsat::host {
namespace {

constexpr double kEffect = 0.08, kNoise = 0.01;

Choices choices(int64_t micro_batch, int bucket, bool overlap, int stage = 2) {
  return {stage, std::log(static_cast<double>(micro_batch)), {{"bucket", bucket}, {"overlap", overlap}}};
}

// Overlap is worth kEffect, the bucket nothing; throughput saturates over the micro batch.
Effects effects_of(size_t trials) {
  Random random(7, 1, 1);
  std::vector<Effects::Measurement> measured;
  for (size_t i = 0; i < trials; ++i) {
    const auto micro_batch = static_cast<int64_t>(8 + random.uniform_below(57));
    const bool overlap = random.uniform_below(2) == 1;
    const int bucket = random.uniform_below(2) == 1 ? 5'000'000 : 500'000'000;
    const double rate = static_cast<double>(micro_batch) / static_cast<double>(micro_batch + 10);
    const double noise = kNoise * (random.uniform() + random.uniform() + random.uniform() - 1.5) * 2;
    measured.push_back({choices(micro_batch, bucket, overlap), std::log(rate) + (overlap ? kEffect : 0) + noise});
  }
  return {std::move(measured), kNoise * kNoise};
}

TEST(EffectsTest, TellsTheKeyThatMattersFromTheOneThatDoesNot) {
  const Effects effects = effects_of(24);
  const Choices best = choices(64, 5'000'000, true);
  const Effects::Loss overlap = effects.loss(best, choices(64, 5'000'000, false));
  const Effects::Loss bucket = effects.loss(best, choices(64, 500'000'000, true));
  EXPECT_NEAR(overlap.mean, kEffect, 0.03);
  EXPECT_GT(overlap.mean - 2 * overlap.deviation, 0);
  EXPECT_LT(std::abs(bucket.mean), 0.01);
  EXPECT_LT(bucket.deviation, 0.03);
}

TEST(EffectsTest, WhatNoTrialHadIsNotKnown) {
  const Effects effects = effects_of(24);
  const Choices best = choices(64, 5'000'000, true);
  EXPECT_GT(effects.loss(best, choices(64, 5'000'000, true, 0)).deviation,
            2 * effects.loss(best, choices(64, 500'000'000, true)).deviation);
}

TEST(EffectsTest, WithoutATrialNothingIsExpected) {
  const Effects none({}, kNoise * kNoise);
  EXPECT_EQ(none.loss(choices(1, 1, true), choices(1, 1, false)).mean, 0);
}

TEST(EffectsTest, AnAbsentKeyHasDeepSpeedsDefault) {
  config::Space space;
  space.stages = {{2, {{"zero_optimization.reduce_bucket_size", {5000000, 500000000}}}}};
  const Json bare = {{"zero_optimization", {{"stage", 2}}}, {"train_micro_batch_size_per_gpu", 4}};
  Json given = bare;
  given["zero_optimization"]["reduce_bucket_size"] = 500000000;
  EXPECT_EQ(choices_of(bare, space).values, choices_of(given, space).values);
  EXPECT_NEAR(choices_of(bare, space).log_micro_batch, std::log(4.0), 1e-12);
}

}  // namespace
}  // namespace dsat::host
