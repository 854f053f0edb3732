// What a searcher learns from trials that do not complete: out of memory lowers a ceiling, other failures do not.
// Each test runs with every searcher that LineageSearch is the base of.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

#include "plugins/clashing_sizes.h"
#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

using ::testing::HasSubstr;

class SearcherFailures : public Searchers {};
DSAT_FOR_EACH_SEARCHER_AND_GRID(SearcherFailures);

TEST_P(SearcherFailures, NothingIsAskedForAboveAKnownOutOfMemory) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2, 3}));
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  std::map<std::string, int64_t> too_big;
  for (const testing::Ended& ended : bench.ended()) {
    const std::string configuration = ended.trial.config["zero_optimization"].dump();
    if (too_big.count(configuration) != 0) {
      EXPECT_LT(ended.trial.micro_batch(), too_big[configuration]);
    }
    if (ended.answer.outcome == Outcome::out_of_memory) too_big[configuration] = ended.trial.micro_batch();
  }
}

TEST_P(SearcherFailures, MostTrialsDoNotRunOutOfMemory) {
  const Surface surface;
  auto bench = this->bench(surface, make_study(surface, small_space({1, 2, 3})));
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_LE(count_outcome(bench, Outcome::out_of_memory) * 3, static_cast<int>(bench.ended().size()));
}

// A failure at some micro batch must not keep other configurations from running there and above.
TEST_P(SearcherFailures, AFailedTrialLowersNoCeiling) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2}));
  for (const Outcome outcome : {Outcome::failed, Outcome::timed_out, Outcome::invalid_config}) {
    auto bench = this->bench(study, [&](const testing::Trial& trial) -> testing::Answer {
      const int64_t bucket = trial.config["zero_optimization"]["reduce_bucket_size"].get<int64_t>();
      if (bucket == 5000000) return {outcome, {}, std::nullopt, "a bug in the script"};
      return surface.answer(trial);
    });
    ASSERT_TRUE(bench.run()) << bench.error();
    EXPECT_GE(metric_of(bench, bench.best(), "throughput"), 0.99 * surface.best_throughput(study));
  }
}

// A search that was taken over: what failed before is no news, and the host would answer it without a run.
TEST_P(SearcherFailures, FailuresOfAnEarlierSearchAreNeitherAskedForNorCounted) {
  const Surface surface;
  config::Space space = small_space({1, 2});
  for (config::StageSpace& stage : space.stages) stage.axes.push_back({"data.variant", {}});
  for (int variant = 0; variant < 40; ++variant) {
    for (config::StageSpace& stage : space.stages) stage.axes.back().values.push_back(variant);
  }
  Study study = make_study(surface, space);
  study.limits.max_trials = 200;
  auto broken = this->bench(study, [](const testing::Trial&) { return testing::Answer::failed("a typo"); });
  ASSERT_TRUE(broken.run()) << broken.error();
  EXPECT_THAT(broken.finish_reason(), HasSubstr("64 trials"));

  std::set<std::string> known;
  for (const testing::Ended& ended : broken.ended()) {
    study.observations.push_back({{"trial", ended.trial.id}, {"config", ended.trial.config}, {"outcome", "failed"}});
    known.insert(ended.trial.config.dump());
  }
  auto mended = this->bench(surface, study);
  ASSERT_TRUE(mended.run()) << mended.error();
  for (const testing::Trial& trial : mended.asked()) EXPECT_EQ(known.count(trial.config.dump()), 0u) << trial.id;
  EXPECT_GE(metric_of(mended, mended.best(), "throughput"), 0.9 * surface.best_throughput(study));
}

TEST_P(SearcherFailures, SizesThatClashOnlyTogetherAreLeftOut) {
  const Surface surface;
  int unreadable = 0;
  auto bench = this->bench(study_of_clashing_sizes(surface), refusing_clashes(surface, unreadable));
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(unreadable, 0);
  EXPECT_GT(count_outcome(bench, Outcome::completed), 0);
}

// Once more below the failure, which may come with the micro batch, and no more.
TEST_P(SearcherFailures, AConfigurationThatFailedTwiceIsLeftAlone) {
  const Surface surface;
  std::map<std::string, int> failures;
  auto bench = this->bench(make_study(surface, small_space({1, 2, 3})), [&](const testing::Trial& trial) {
    if (trial.stage() != 2) return surface.answer(trial);
    ++failures[trial.config["zero_optimization"].dump()];
    return testing::Answer::failed("stage 2 does not work here");
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  for (const auto& [configuration, count] : failures) EXPECT_LE(count, 2) << configuration;
}

// A data set of so many samples, or a script's own maximum: no memory is short.
TEST_P(SearcherFailures, ACeilingThatIsNoMemoryIsFoundAndTheSearchGoesOnBelow) {
  constexpr int64_t kCeiling = 23;
  Surface surface;
  for (const bool knows_memory : {true, false}) {
    Study study = make_study(surface, small_space({1, 2}));
    if (!knows_memory) {
      study.device_memory_bytes.reset();
      study.profile["device_memory_bytes"] = nullptr;
    }
    int failed = 0;
    auto bench = this->bench(study, [&](const testing::Trial& trial) {
      if (trial.micro_batch() <= kCeiling) return surface.answer(trial);
      ++failed;
      return testing::Answer::failed("the data set has 23 samples");
    });
    ASSERT_TRUE(bench.run()) << bench.error();
    int64_t largest = 0;
    for (const testing::Ended& ended : bench.ended()) {
      if (ended.answer.outcome == Outcome::completed) largest = std::max(largest, ended.trial.micro_batch());
    }
    EXPECT_GE(largest, kCeiling * 2 / 3) << knows_memory;
    EXPECT_LE(failed * 2, static_cast<int>(bench.ended().size())) << knows_memory;
  }
}

// Neither the point itself nor one with larger buckets or a larger micro batch.
TEST_P(SearcherFailures, NoPointThatAnOutOfMemoryTrialDominatesIsTried) {
  Surface surface;
  surface.activation_bytes = 1.3e9;  // buckets weigh much beside it
  surface.tells_peak = false;
  for (const bool knows_memory : {true, false}) {
    Study study = make_study(surface, small_space({1, 2, 3}));
    if (!knows_memory) {
      study.device_memory_bytes.reset();
      study.profile["device_memory_bytes"] = nullptr;
    }
    auto bench = this->bench(surface, study);
    ASSERT_TRUE(bench.run()) << bench.error();
    std::vector<testing::Trial> too_big;
    const auto bucket = [](const testing::Trial& t) {
      return t.config["zero_optimization"]["reduce_bucket_size"].get<int64_t>();
    };
    const auto overlaps = [](const testing::Trial& t) {
      return t.config["zero_optimization"].value("overlap_comm", false);
    };
    for (const testing::Ended& ended : bench.ended()) {
      for (const testing::Trial& seen : too_big) {
        const bool dominated = ended.trial.stage() == seen.stage() && bucket(ended.trial) >= bucket(seen) &&
                               overlaps(ended.trial) >= overlaps(seen) &&
                               ended.trial.micro_batch() >= seen.micro_batch();
        EXPECT_FALSE(dominated) << ended.trial.config.dump() << " after " << seen.config.dump();
      }
      if (ended.answer.outcome == Outcome::out_of_memory) too_big.push_back(ended.trial);
    }
  }
}

TEST_P(SearcherFailures, NothingButFailuresEndsTheSearch) {
  const Surface surface;
  config::Space space = small_space({1});
  for (int i = 0; i < 1000; ++i) space.stages[0].axes[0].values.push_back(1000 + i);
  for (const Outcome outcome :
       {Outcome::failed, Outcome::timed_out, Outcome::invalid_config, Outcome::lost, Outcome::diverged}) {
    Study study = make_study(surface, space);
    study.limits.max_trials = 10000;
    auto bench = this->bench(study, [&](const testing::Trial&) -> testing::Answer {
      return {outcome, {}, std::nullopt, "a typo"};
    });
    ASSERT_TRUE(bench.run()) << bench.error();
    // Refusals cost no run: more of them are borne.
    EXPECT_LE(bench.ended().size(), outcome == Outcome::invalid_config ? 600u : 100u);
    EXPECT_THAT(bench.finish_reason(), HasSubstr("a typo"));
    EXPECT_EQ(bench.best(), kNoTrial);
  }
}

TEST_P(SearcherFailures, ALostTrialIsAskedForOnceMore) {
  const Surface surface;
  int lost = 0;
  const Study study = make_study(surface, small_space({1}));
  auto bench = this->bench(study, [&](const testing::Trial& trial) -> testing::Answer {
    if (lost++ == 0) return {Outcome::lost, {}, std::nullopt, "a node died"};
    return surface.answer(trial);
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  ASSERT_GE(bench.asked().size(), 2u);
  EXPECT_TRUE(bench.asked()[1].repeat);
  EXPECT_EQ(bench.asked()[0].config, bench.asked()[1].config);
  EXPECT_GE(metric_of(bench, bench.best(), "throughput"), 0.99 * surface.best_throughput(study));
}

// The host may refuse the sizes that always fail, and a study its larger train batches.
TEST_P(SearcherFailures, WhereLargeSizesAreRefusedTheSearchGoesOnBelow) {
  const Surface surface;
  auto bench = this->bench(make_study(surface, small_space({1, 2, 3})), [&](const testing::Trial& trial) {
    return trial.micro_batch() > 20 ? testing::Answer{Outcome::invalid_config, {}, std::nullopt, "too large"}
                                    : surface.answer(trial);
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  int64_t largest = 0;
  for (const testing::Ended& ended : bench.ended()) {
    if (ended.answer.outcome == Outcome::completed) largest = std::max(largest, ended.trial.micro_batch());
  }
  EXPECT_GE(largest, 13) << "at least two thirds of what is accepted";
}

// Each stage is given up after the values that need the least, at the smallest micro batch.
TEST_P(SearcherFailures, WhereAllRunsOutOfMemoryThreeTrialsAStageShowIt) {
  const Surface surface;
  for (const int64_t fits_with_bucket : {0, 5000000}) {
    int ran_out = 0;
    std::map<int, bool> least_tried;
    auto bench = this->bench(make_study(surface, small_space({1, 2, 3})), [&](const testing::Trial& trial) {
      const bool is_least = trial.config["zero_optimization"]["reduce_bucket_size"] == 5000000;
      least_tried[trial.stage()] |= is_least && trial.micro_batch() == 1;
      if (is_least && fits_with_bucket != 0 && trial.micro_batch() <= 3) return surface.answer(trial);
      ++ran_out;
      return testing::Answer::out_of_memory();
    });
    ASSERT_TRUE(bench.run()) << bench.error();
    for (const int stage : {1, 2, 3}) EXPECT_TRUE(least_tried[stage]) << stage;
    EXPECT_EQ(bench.best() == kNoTrial, fits_with_bucket == 0);
    if (fits_with_bucket == 0) {
      EXPECT_LE(ran_out, 9);
    }
  }
}

TEST_P(SearcherFailures, WhereNothingFitsItEndsBeforeTheBudgetDoes) {
  Surface surface;
  surface.fixed_bytes = 20e9;
  config::Space space = small_space({1, 2, 3});
  for (int i = 0; i < 300; ++i) space.stages[0].axes[0].values.push_back(600000000 + i);
  Study study = make_study(surface, space);
  study.limits.max_trials = 1000;
  auto bench = this->bench(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_TRUE(bench.finished());
  EXPECT_EQ(bench.best(), kNoTrial);
  EXPECT_LE(bench.ended().size(), 50u);
}

TEST_P(SearcherFailures, ACompletedTrialWithoutTheMetricFitsButIsNoBest) {
  const Surface surface;
  auto bench = this->bench(make_study(surface, small_space({1})), [&](const testing::Trial& trial) {
    testing::Answer answer = surface.answer(trial);
    answer.metrics.erase("throughput");
    return answer;
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_TRUE(bench.finished());
  EXPECT_EQ(bench.best(), kNoTrial);
}

}  // namespace
}  // namespace dsat::tests
