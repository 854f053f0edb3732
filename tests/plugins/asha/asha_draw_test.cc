// asha with asha-draw=guided: new configurations come from guided's models, and all that asha promises still holds.
// Studies on the simple surface of surface.h, beside the same with random draws.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "asha/asha.h"
#include "plugins/surface.h"

namespace dsat::tests {
namespace {

testing::Bench bench(const Surface& surface, const Study& study, const char* draw) {
  return testing::Bench(testing::factory<Asha>(), "asha", study,
                        [surface](const testing::Trial& trial) { return surface.answer(trial); },
                        {{"asha-draw", draw}});
}

// Bucket sizes from a two hundredth of the best on: most of them are slow.
Study study_of_many_buckets(const Surface& surface, int64_t max_trials) {
  config::Space space = small_space({1, 2});
  for (config::StageSpace& stage : space.stages) {
    stage.axes[0].values.clear();
    for (int i = 1; i <= 60; ++i) stage.axes[0].values.push_back(i <= 50 ? i * 500000 : (i - 50) * 50000000);
  }
  Study study = make_study(surface, space);
  study.limits.max_trials = max_trials;
  return study;
}

// Configurations drawn until one is within 2 % of the fastest at one micro batch; all of them if none is.
size_t draws_until_good(const testing::Bench& bench, const Surface& surface) {
  std::set<std::string> seen;
  for (const testing::Trial& trial : bench.asked()) {
    Json config = trial.config;
    seen.insert(config["zero_optimization"].dump());
    config["train_micro_batch_size_per_gpu"] = 32;
    if (surface.throughput(config) > 0.98 * 800) break;
  }
  return seen.size();
}

TEST(AshaDraw, GuidedDrawsReachGoodConfigurationsSooner) {
  const Surface surface;
  size_t guided = 0, random = 0;
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    Study study = study_of_many_buckets(surface, 30);
    study.seed = seed;
    for (auto& [draw, sum] : std::map<const char*, size_t*>{{"guided", &guided}, {"random", &random}}) {
      auto run = bench(surface, study, draw);
      ASSERT_TRUE(run.run()) << run.error();
      *sum += draws_until_good(run, surface);
    }
  }
  EXPECT_LT(2 * guided, random);
}

TEST(AshaDraw, SavedAndRestoredItGoesOnAsIfNothingHadHappened) {
  const Surface surface;
  for (const int64_t concurrency : {1, 8}) {
    Study study = study_of_many_buckets(surface, 30);
    study.limits.max_concurrent_trials = concurrency;
    auto whole = bench(surface, study, "guided");
    ASSERT_TRUE(whole.run()) << whole.error();
    for (const int steps : {1, 8, 17}) {
      auto before = bench(surface, study, "guided");
      before.start();
      for (int i = 0; i < steps; ++i) ASSERT_TRUE(before.step());
      auto after = bench(surface, study, "guided");
      after.restore_from(before);
      while (after.step()) {
      }
      EXPECT_EQ(after.ops(), whole.ops()) << steps << " steps, " << concurrency << " at a time";
    }
  }
}

TEST(AshaDraw, SearchesASmallSpaceToItsEndAndNothingTwice) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2}));
  auto run = bench(surface, study, "guided");
  ASSERT_TRUE(run.run()) << run.error();
  std::set<std::string> configurations;
  for (const testing::Trial& trial : run.asked()) {
    EXPECT_FALSE(trial.duplicate);
    configurations.insert(trial.config["zero_optimization"].dump());
  }
  EXPECT_EQ(configurations.size(), 3u + 6u);
}

// With few trials ended the acquisition samples what runs; it must not be counted in by the models as well.
TEST(AshaDraw, DrawsBesideTrialsThatRun) {
  const Surface surface;
  for (const int64_t at_once : {4, 16}) {
    Study study = study_of_many_buckets(surface, 40);
    study.limits.max_concurrent_trials = at_once;
    auto run = bench(surface, study, "guided");
    ASSERT_TRUE(run.run()) << run.error();
    EXPECT_EQ(run.ended().size(), 40u);
  }
}

// Nothing completes: there is no model to draw from.
TEST(AshaDraw, DrawsAtRandomWhereNothingWasMeasured) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2}));
  testing::Bench run(testing::factory<Asha>(), "asha", study,
                     [](const testing::Trial&) { return testing::Answer::failed("no"); }, {{"asha-draw", "guided"}});
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_GE(run.asked().size(), 9u);
}

}  // namespace
}  // namespace dsat::tests
