// What asha, binary and random have in common: they find the best, keep to the space and the limits, and are
// deterministic.
#include "plugins/searchers.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

namespace dsat::tests {
namespace {

using ::testing::HasSubstr;

DSAT_FOR_EACH_SEARCHER(Searchers);

class BisectingSearchers : public Searchers {};
INSTANTIATE_TEST_SUITE_P(Each, BisectingSearchers, ::testing::Values("asha", "binary"), searcher_name);

TEST_P(Searchers, FindsTheBestWithinTheBudget) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2, 3}));
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_TRUE(bench.finished());
  EXPECT_GE(metric_of(bench, bench.best(), "throughput"), 0.99 * surface.best_throughput(study));
}

TEST_P(Searchers, FindsTheCeilingOfAStageInSixteenTrials) {
  Surface surface;
  surface.device_memory = 8e9;
  Study study = make_study(surface, small_space({1, 2, 3}));
  study.limits.max_trials = 13;  // the profile spent three
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  const bool found = std::any_of(bench.ended().begin(), bench.ended().end(), [&](const testing::Ended& ended) {
    Json larger = ended.trial.config;
    larger["train_micro_batch_size_per_gpu"] = ended.trial.micro_batch() + 1;
    return ended.answer.outcome == Outcome::completed && !surface.fits(larger);
  });
  EXPECT_TRUE(found);
}

// One trial settles all that almost surely fits; the searches of old began in the middle of it.
TEST_P(BisectingSearchers, BeginWhereItAlmostSurelyFits) {
  const Surface surface;
  Study study = make_study(surface, small_space({1}));
  for (const int micro_batch : {2, 8}) {  // what the profiler leaves behind
    Json config = study.base_config;
    config["train_micro_batch_size_per_gpu"] = micro_batch;
    study.observations.push_back({{"trial", micro_batch},
                                  {"config", config},
                                  {"outcome", "completed"},
                                  {"metrics", {{"throughput", surface.throughput(config)}}},
                                  {"peak_bytes", surface.peak(config)}});
  }
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  Json larger = bench.asked()[0].config;
  EXPECT_TRUE(surface.fits(larger));
  larger["train_micro_batch_size_per_gpu"] = bench.asked()[0].micro_batch() * 3 / 2;
  EXPECT_FALSE(surface.fits(larger)) << "peaks of 2 and 8 samples say little of seventy";
}

class SearchersAndGrid : public Searchers {};
DSAT_FOR_EACH_SEARCHER_AND_GRID(SearchersAndGrid);

// The device holds 305 samples with small buckets and 300 with large ones. A profile that saw one forward pass may
// expect a fifth of that.
TEST_P(SearchersAndGrid, WhereSome300SamplesFitTheyEndNearThem) {
  Surface surface;
  surface.device_memory = 64e9;
  surface.activation_bytes = 2.06e8;
  for (const bool tells_peak : {true, false}) {
    for (const double expected : {1.0, 5.0}) {
      surface.tells_peak = tells_peak;
      Study study = make_study(surface, small_space({1, 2, 3}));
      study.profile["activation_bytes_per_sample"] = {{"value", expected * surface.activation_bytes},
                                                      {"low", 0.5 * expected * surface.activation_bytes},
                                                      {"high", 2 * expected * surface.activation_bytes}};
      study.limits.max_trials = 32;
      auto bench = this->bench(surface, study);
      ASSERT_TRUE(bench.run()) << bench.error();
      int64_t best = 0;
      for (const testing::Ended& ended : bench.ended()) {
        if (ended.trial.id == bench.best()) best = ended.trial.micro_batch();
      }
      EXPECT_GE(best, 280) << tells_peak << " " << expected;
      EXPECT_LE(best, 305);
    }
  }
}

TEST_P(Searchers, FindsTheCeilingWithoutKnowingTheDevice) {
  Surface surface;
  surface.tells_peak = false;
  Study study = make_study(surface, small_space({1}));
  study.device_memory_bytes.reset();
  study.profile["device_memory_bytes"] = nullptr;
  study.limits.max_trials = 40;
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  // Those that search reach it; one that throws dice comes near.
  const double share = std::string(GetParam()) == "random" ? 0.85 : 0.97;
  EXPECT_GE(metric_of(bench, bench.best(), "throughput"), share * surface.best_throughput(study));
  EXPECT_GT(count_outcome(bench, Outcome::out_of_memory), 0);
}

// Only the first configuration crawls: the others begin where one of their stage, or of a lower one, fitted.
TEST_P(BisectingSearchers, WithoutAKnownMemoryAConfigurationBeginsAtWhatAnotherHolds) {
  Surface surface;
  surface.tells_peak = false;
  Study study = make_study(surface, small_space({1, 2, 3}));
  study.device_memory_bytes.reset();
  study.profile["device_memory_bytes"] = nullptr;
  study.limits.max_trials = 60;
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  std::set<std::string> begun;
  std::map<int, int64_t> fitted;  // the largest micro batch by stage
  for (const testing::Ended& ended : bench.ended()) {
    const int stage = ended.trial.stage();
    int64_t held = 1;
    for (const auto& [of, largest] : fitted) held = of <= stage ? std::max(held, largest) : held;
    const bool first = begun.insert(ended.trial.config["zero_optimization"].dump()).second;
    if (first && begun.size() > 1) {
      EXPECT_GE(ended.trial.micro_batch() * 2, held) << ended.trial.note;
    }
    if (ended.answer.outcome == Outcome::completed) fitted[stage] = std::max(fitted[stage], ended.trial.micro_batch());
  }
  EXPECT_GT(begun.size(), 1u);
}

// Determined's binary search ends when its range is empty.
TEST(Binary, GoesOnToTheCeilingOfEachConfiguration) {
  Surface surface;
  surface.activation_bytes = 2e7;  // ceilings at some 600 samples
  Study study = make_study(surface, small_space({1}));
  study.limits.max_trials = 60;
  auto bench = testing::Bench(testing::factory<Binary>(), "binary", study,
                              [surface](const testing::Trial& trial) { return surface.answer(trial); });
  ASSERT_TRUE(bench.run()) << bench.error();
  std::map<std::string, testing::Trial> top;
  for (const testing::Ended& ended : bench.ended()) {
    if (ended.answer.outcome != Outcome::completed) continue;
    testing::Trial& largest = top[ended.trial.config["zero_optimization"].dump()];
    if (largest.id == kNoTrial || ended.trial.micro_batch() > largest.micro_batch()) largest = ended.trial;
  }
  ASSERT_EQ(top.size(), 3u);
  for (const auto& [configuration, largest] : top) {
    Json next = largest.config;
    next["train_micro_batch_size_per_gpu"] = largest.micro_batch() + 1;
    EXPECT_FALSE(surface.fits(next)) << configuration << " ended at " << largest.micro_batch();
  }
}

TEST_P(Searchers, WorksWithoutAProfile) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2}));
  study.profile = nullptr;
  study.device_memory_bytes.reset();
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_NE(bench.best(), kNoTrial);
}

TEST_P(Searchers, AGuessThatIsTooLowDoesNotHideTheCeiling) {
  const Surface surface;
  Study study = make_study(surface, small_space({1}));
  const double wrong = 4 * surface.activation_bytes;
  study.profile["activation_bytes_per_sample"] = {{"value", wrong}, {"low", wrong * 0.2}, {"high", wrong * 1.8}};
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_GE(metric_of(bench, bench.best(), "throughput"), 0.97 * surface.best_throughput(study));
}

TEST_P(Searchers, NeverAsksForTheSameConfigurationTwice) {
  const Surface surface;
  Study study = make_study(surface, small_space({0, 1, 2, 3}));
  study.limits.max_trials = 200;
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(count_duplicates(bench), 0);
}

TEST_P(Searchers, SpendsNoTrialOnWhatTheProfileMeasured) {
  Surface surface;
  Study study = make_study(surface, small_space({1}));
  config::Space space = small_space({1});
  space.max_micro_batch = 1;
  space.stages[0].axes.clear();
  study.space = config::to_json(space);
  Json config = study.base_config;
  config["train_micro_batch_size_per_gpu"] = 1;
  config["train_batch_size"] = 4;
  config["gradient_accumulation_steps"] = 1;
  study.observations.push_back({{"trial", 1},
                                {"config", config},
                                {"outcome", "completed"},
                                {"metrics", {{"throughput", 7.0}}},
                                {"peak_bytes", 5000000000}});
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_TRUE(bench.asked().empty());
  EXPECT_EQ(bench.best(), 1u);
}

TEST_P(Searchers, AModelInformationTrialIsNoMeasurement) {
  const Surface surface;
  Study study = make_study(surface, small_space({1}));
  Json config = study.base_config;
  config["train_micro_batch_size_per_gpu"] = 1;
  study.observations.push_back({{"trial", 0},
                                {"config", config},
                                {"outcome", "completed"},
                                {"metrics", {{"num_params", 1e8}, {"activation_mem_per_gpu", 1e8}}},
                                {"peak_bytes", 1}});
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_GE(metric_of(bench, bench.best(), "throughput"), 0.97 * surface.best_throughput(study));
}

TEST_P(Searchers, SameSeedSameOps) {
  const Surface surface;
  for (const int64_t concurrency : {1, 8}) {
    Study study = make_study(surface, small_space({1, 2, 3}));
    study.limits.max_concurrent_trials = concurrency;
    auto first = this->bench(surface, study);
    auto second = this->bench(surface, study);
    ASSERT_TRUE(first.run() && second.run());
    EXPECT_EQ(first.ops(), second.ops());
  }
}

TEST_P(Searchers, AnotherSeedDrawsOtherConfigurations) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2, 3}));
  auto first = this->bench(surface, study);
  study.seed = 43;
  auto second = this->bench(surface, study);
  ASSERT_TRUE(first.run() && second.run());
  EXPECT_NE(first.ops(), second.ops());
}

TEST_P(Searchers, KeepsAsManyTrialsAtWorkAsMayRun) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2, 3}));
  study.limits.max_concurrent_trials = 8;
  auto bench = this->bench(surface, study);
  bench.end_in_order([](size_t running) { return running - 1; });
  bench.start();
  EXPECT_EQ(bench.open(), 8u);
  size_t most = 0;
  while (bench.step()) most = std::max(most, bench.open());
  EXPECT_EQ(bench.error(), "");
  EXPECT_EQ(most, 8u);
  EXPECT_EQ(count_duplicates(bench), 0);
  EXPECT_TRUE(bench.finished());
}

TEST_P(Searchers, EndsAtTheTrialLimitAndSaysSo) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2, 3}));
  study.limits.max_trials = 7;
  study.limits.max_concurrent_trials = 4;
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(bench.ended().size(), 7u);
  EXPECT_TRUE(bench.finished());
  EXPECT_THAT(bench.finish_reason(), HasSubstr("--max-trials"));
  EXPECT_NE(bench.best(), kNoTrial);
}

TEST_P(Searchers, WithNoTrialLeftTheyFinishAtOnce) {
  const Surface surface;
  Study study = make_study(surface, small_space({1}));
  study.limits.max_trials = 0;
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_TRUE(bench.finished());
  EXPECT_EQ(bench.best(), kNoTrial);
}

TEST_P(Searchers, OneLegalMicroBatchIsTriedOnceInEachConfiguration) {
  const Surface surface;
  config::Space space = small_space({1});
  space.min_micro_batch = 6;
  space.max_micro_batch = 6;
  auto bench = this->bench(surface, make_study(surface, space));
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(bench.asked().size(), 3u);
  for (const testing::Trial& trial : bench.asked()) EXPECT_EQ(trial.micro_batch(), 6);
  EXPECT_THAT(bench.finish_reason(), HasSubstr("left to try"));
}

TEST_P(Searchers, AFixedGlobalBatchAllowsOnlyItsDivisors) {
  const Surface surface;
  config::Space space = small_space({1, 2});
  space.micro_batch_divides = 60;
  auto bench = this->bench(surface, make_study(surface, space));
  ASSERT_TRUE(bench.run()) << bench.error();
  std::set<int64_t> seen;
  for (const testing::Trial& trial : bench.asked()) {
    EXPECT_EQ(60 % trial.micro_batch(), 0) << trial.micro_batch();
    seen.insert(trial.micro_batch());
  }
  EXPECT_EQ(*seen.rbegin(), 60);
}

TEST_P(Searchers, KeepsToTheStagesOfTheStudy) {
  const Surface surface;
  auto bench = this->bench(surface, make_study(surface, small_space({2})));
  ASSERT_TRUE(bench.run()) << bench.error();
  for (const testing::Trial& trial : bench.asked()) EXPECT_EQ(trial.stage(), 2);
}

TEST_P(Searchers, NoStageIsLeftOutOfASmallBudget) {
  const Surface surface;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Study study = make_study(surface, small_space({1, 2, 3}));
    study.seed = seed;
    study.limits.max_trials = 20;
    auto bench = this->bench(surface, study);
    ASSERT_TRUE(bench.run()) << bench.error();
    std::set<int> stages;
    for (const testing::Trial& trial : bench.asked()) stages.insert(trial.stage());
    EXPECT_EQ(stages, (std::set<int>{1, 2, 3})) << "seed " << seed;
  }
}

TEST_P(Searchers, ZeroActivationMemoryIsNoDivisionByZero) {
  Surface surface;
  surface.activation_bytes = 0;
  config::Space space = small_space({1});
  space.max_micro_batch = 64;
  auto bench = this->bench(surface, make_study(surface, space));
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_NE(bench.best(), kNoTrial);
}

TEST_P(Searchers, AMinimisedLatencyIsSoughtAtSmallBatches) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2}));
  study.metric = "latency";
  study.maximise = false;
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  double least = 1e300;
  for (const testing::Ended& ended : bench.ended()) {
    EXPECT_EQ(ended.trial.micro_batch(), 1);
    least = std::min(least, ended.answer.metrics.at("latency"));
  }
  EXPECT_EQ(metric_of(bench, bench.best(), "latency"), least);
}

TEST_P(Searchers, EveryTrialSaysWhy) {
  const Surface surface;
  auto bench = this->bench(surface, make_study(surface, small_space({1, 2, 3})));
  ASSERT_TRUE(bench.run()) << bench.error();
  for (const testing::Trial& trial : bench.asked()) {
    EXPECT_THAT(trial.note, HasSubstr("stage " + std::to_string(trial.stage())));
    EXPECT_THAT(trial.note, HasSubstr("lineage"));
    EXPECT_EQ(trial.note.find('\n'), std::string::npos);
  }
}

TEST_P(Searchers, ALineageFollowsFromItsOwnTrials) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2, 3}));
  study.limits.max_concurrent_trials = 8;
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  std::map<TrialId, testing::Trial> by_id;
  for (const testing::Trial& trial : bench.asked()) by_id[trial.id] = trial;
  for (const testing::Trial& trial : bench.asked()) {
    if (trial.parent == kNoTrial) continue;
    ASSERT_TRUE(by_id.count(trial.parent));
    EXPECT_EQ(by_id[trial.parent].config["zero_optimization"], trial.config["zero_optimization"]);
  }
}

TEST_P(Searchers, AnEmptySpaceIsRefused) {
  const Surface surface;
  config::Space space = small_space({1});
  space.min_micro_batch = 5;
  space.max_micro_batch = 4;
  auto bench = this->bench(surface, make_study(surface, space));
  EXPECT_FALSE(bench.run());
  EXPECT_THAT(bench.error(), HasSubstr("no micro batch"));
}

}  // namespace
}  // namespace dsat::tests
