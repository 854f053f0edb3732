// What the history of a study says of ceilings and of the best configuration.
// Each test feeds trials, by learn() or as observations, and asks for bounds.
#include "search/trial_history.h"

#include <gtest/gtest.h>

#include "dsat/random.h"
#include "plugins/surface.h"

namespace dsat::search {
namespace {

class TrialHistoryTest : public ::testing::Test {
 protected:
  Json config(int64_t micro_batch, int64_t bucket = 500000000, int stage = 1) const {
    Json config = study_.base_config;
    config["zero_optimization"] = {{"stage", stage}, {"reduce_bucket_size", bucket}};
    config["train_micro_batch_size_per_gpu"] = micro_batch;
    return config;
  }
  Ceiling ceiling(const TrialHistory& history, const Json& config) const {
    return history.ceiling(history.setup(config));
  }
  tests::Surface surface_;
  Study study_ = tests::make_study(surface_, tests::small_space({1, 2, 3}));
};

TEST_F(TrialHistoryTest, OutOfMemoryBoundsTheSameAndHungrierConfigurations) {
  TrialHistory history(study_);
  history.learn(0, config(20, 50000000), Outcome::out_of_memory, std::nullopt, std::nullopt);
  EXPECT_EQ(ceiling(history, config(1, 50000000)).too_big, 20);
  EXPECT_EQ(ceiling(history, config(1, 500000000)).too_big, 20);
  EXPECT_FALSE(ceiling(history, config(1, 5000000)).too_big);
  EXPECT_FALSE(ceiling(history, config(1, 500000000, 2)).too_big);
  EXPECT_LE(ceiling(history, config(1)).possible, 19);
}

TEST_F(TrialHistoryTest, WhatFittedFitsTheSameAndLeanerConfigurations) {
  TrialHistory history(study_);
  history.learn(0, config(300, 50000000), Outcome::completed, 1.0, std::nullopt);
  EXPECT_EQ(ceiling(history, config(1, 50000000)).fits, 300);
  EXPECT_EQ(ceiling(history, config(1, 5000000)).fits, 300);
  EXPECT_EQ(ceiling(history, config(1, 500000000)).fits, 0);
  EXPECT_GE(ceiling(history, config(1, 5000000)).likely, 300);
}

// Recomputed activations in the host's memory: no formula reads the key, and no trial reports its peak.
TEST_F(TrialHistoryTest, ALimitOfOneValueOfUnknownEffectIsNotTheOthers) {
  config::Space space = tests::small_space({1, 2});
  for (config::StageSpace& stage : space.stages) stage.axes.push_back({"data.recompute", {false, true}});
  study_.space = config::to_json(space);
  TrialHistory history(study_);
  const auto with = [&](int64_t micro_batch, bool recompute, int stage = 1) {
    Json of = config(micro_batch, 500000000, stage);
    of["data"] = {{"recompute", recompute}};
    return of;
  };
  uint64_t id = 0;
  const auto learn = [&](const Json& of, Outcome outcome) { history.learn(id++, of, outcome, 1.0, std::nullopt); };
  EXPECT_FALSE(history.is_beyond_model(history.setup(with(1, true))));
  learn(with(2, false), Outcome::completed);
  learn(with(3, false), Outcome::out_of_memory);
  EXPECT_FALSE(history.is_beyond_model(history.setup(with(1, false)))) << "its own limit";
  int64_t largest = 1;
  for (int64_t next = 2; next <= 64; next = static_cast<int64_t>(ceiling(history, with(1, true)).likely)) {
    EXPECT_GE(next, 2 * largest) << "it doubles";
    learn(with(next, true), Outcome::completed);
    largest = next;
  }
  EXPECT_GE(largest, 64);
  learn(with(128, true), Outcome::out_of_memory);
  EXPECT_NEAR(ceiling(history, with(1, true)).likely, (largest + 128) / 2, 1);
  EXPECT_LE(ceiling(history, with(1, false)).likely, 2.5);
  EXPECT_NEAR(ceiling(history, with(1, true, 2)).likely, static_cast<double>(largest), 1) << "as another stage holds";
}

// Where the key has no effect, one trial too many shows it.
TEST_F(TrialHistoryTest, EqualLimitsOfTwoValuesShowThatTheKeyHasNoEffect) {
  config::Space space = tests::small_space({1});
  space.stages[0].axes.push_back({"data.variant", {1, 2, 3}});
  study_.space = config::to_json(space);
  TrialHistory history(study_);
  const auto with = [&](int64_t micro_batch, int variant) {
    Json of = config(micro_batch);
    of["data"] = {{"variant", variant}};
    return of;
  };
  for (const int variant : {1, 2}) {
    history.learn(static_cast<uint64_t>(2 * variant), with(40, variant), Outcome::completed, 1.0, std::nullopt);
    history.learn(static_cast<uint64_t>(2 * variant + 1), with(60, variant), Outcome::out_of_memory, {}, {});
  }
  EXPECT_FALSE(history.is_beyond_model(history.setup(with(1, 3))));
}

// A key of the user's own (a sequence length, say) may decide memory, and no formula reads it.
TEST_F(TrialHistoryTest, WhereAKeyDiffersOfWhichNothingIsKnownNothingFollows) {
  config::Space space = tests::small_space({1});
  space.stages[0].axes.push_back({"data.sequence", {512, 2048}});
  space.stages[0].axes.push_back({"zero_optimization.reduce_scatter", {true, false}});
  study_.space = config::to_json(space);
  TrialHistory history(study_);
  const auto with = [&](int64_t micro_batch, int64_t sequence, bool scatter) {
    Json of = config(micro_batch);
    of["data"] = {{"sequence", sequence}};
    of["zero_optimization"]["reduce_scatter"] = scatter;
    return of;
  };
  const double before = ceiling(history, with(1, 512, true)).possible;
  history.learn(0, with(4, 2048, true), Outcome::out_of_memory, std::nullopt, std::nullopt);
  EXPECT_EQ(ceiling(history, with(1, 2048, false)).too_big, 4) << "reduce_scatter takes no memory";
  EXPECT_FALSE(ceiling(history, with(1, 512, true)).too_big);
  history.learn(1, with(30, 512, true), Outcome::completed, 1.0, std::nullopt);
  EXPECT_EQ(ceiling(history, with(1, 512, true)).fits, 30);
  EXPECT_EQ(ceiling(history, with(1, 2048, true)).fits, 0);
  EXPECT_LT(ceiling(history, with(1, 2048, true)).possible, 4);
  EXPECT_GT(before, 30);
}

TEST_F(TrialHistoryTest, OtherFailuresTeachNothing) {
  TrialHistory history(study_);
  const Ceiling before = ceiling(history, config(1));
  for (const Outcome outcome :
       {Outcome::stopped, Outcome::lost, Outcome::failed, Outcome::timed_out, Outcome::invalid_config}) {
    history.learn(0, config(2), outcome, std::nullopt, std::nullopt);
  }
  EXPECT_EQ(ceiling(history, config(1)).likely, before.likely);
  EXPECT_EQ(ceiling(history, config(1)).possible, before.possible);
}

// The host would answer a second request for it with the first trial. One that was lost or stopped may run yet.
TEST_F(TrialHistoryTest, WhatFailedIsKnownUntilItHasRun) {
  TrialHistory history(study_);
  history.learn(0, config(2), Outcome::lost, std::nullopt, std::nullopt);
  history.learn(1, config(2), Outcome::stopped, std::nullopt, std::nullopt);
  EXPECT_FALSE(history.find(config(2)));
  history.learn(2, config(2), Outcome::timed_out, std::nullopt, std::nullopt);
  history.learn(3, config(2), Outcome::failed, std::nullopt, std::nullopt);
  ASSERT_TRUE(history.find(config(2)));
  EXPECT_EQ(history.find(config(2))->trial, 2u);
  EXPECT_EQ(history.find(config(2))->outcome, Outcome::timed_out);
  EXPECT_FALSE(history.find(config(3)));
  history.learn(4, config(2), Outcome::completed, 100.0, std::nullopt);
  EXPECT_EQ(history.find(config(2))->outcome, Outcome::completed);
  EXPECT_EQ(history.find(config(2))->trial, 4u);
}

TEST_F(TrialHistoryTest, AFitOutweighsAnOutOfMemoryBelowIt) {
  TrialHistory history(study_);
  history.learn(0, config(10), Outcome::out_of_memory, std::nullopt, std::nullopt);
  history.learn(1, config(12), Outcome::completed, 1.0, std::nullopt);
  EXPECT_EQ(ceiling(history, config(1)).fits, 12);
  EXPECT_GE(ceiling(history, config(1)).likely, 12);
}

TEST_F(TrialHistoryTest, RepeatedTrialsAreOneConfigurationWithTheirMean) {
  TrialHistory history(study_);
  history.learn(4, config(2), Outcome::completed, 100.0, std::nullopt);
  history.learn(5, config(3), Outcome::completed, 95.0, std::nullopt);
  EXPECT_EQ(history.best()->trial, 4u);
  history.learn(6, config(2), Outcome::completed, 80.0, std::nullopt);
  EXPECT_EQ(history.find(config(2))->metric, 90.0);
  EXPECT_EQ(history.best()->trial, 5u);
}

TEST_F(TrialHistoryTest, TheTrialOfAConfigurationIsTheFirstThatMeasuredIt) {
  TrialHistory history(study_);
  history.learn(3, config(2), Outcome::out_of_memory, std::nullopt, std::nullopt);
  EXPECT_EQ(history.find(config(2))->trial, 3u);
  history.learn(5, config(2), Outcome::completed, 100.0, std::nullopt);
  history.learn(4, config(2), Outcome::completed, 100.0, std::nullopt);
  history.learn(2, config(2), Outcome::out_of_memory, std::nullopt, std::nullopt);
  EXPECT_EQ(history.find(config(2))->trial, 4u);
  EXPECT_EQ(history.best()->trial, 4u);
}

TEST_F(TrialHistoryTest, ATieGoesToTheLowerId) {
  TrialHistory history(study_);
  history.learn(9, config(2), Outcome::completed, 100.0, std::nullopt);
  history.learn(3, config(3), Outcome::completed, 100.0, std::nullopt);
  EXPECT_EQ(history.best()->trial, 3u);
}

TEST_F(TrialHistoryTest, TheBestOfAMinimisedMetricIsTheSmallest) {
  study_.maximise = false;
  TrialHistory history(study_);
  history.learn(0, config(2), Outcome::completed, 100.0, std::nullopt);
  history.learn(1, config(3, 500000000, 2), Outcome::completed, 50.0, std::nullopt);
  EXPECT_EQ(history.best()->trial, 1u);
  EXPECT_EQ(history.best_of(1)->trial, 0u);
  EXPECT_FALSE(history.best_of(3));
}

TEST_F(TrialHistoryTest, BatchKeysThatFollowDoNotTellTwoConfigurationsApart) {
  TrialHistory history(study_);
  Json complete = config(2);
  complete["train_batch_size"] = 8;
  complete["gradient_accumulation_steps"] = 1;
  complete["autotuning"] = {{"enabled", true}};
  history.learn(0, complete, Outcome::completed, 1.0, std::nullopt);
  EXPECT_TRUE(history.find(config(2)));
  Json accumulated = config(2);
  accumulated["gradient_accumulation_steps"] = 4;
  EXPECT_FALSE(history.find(accumulated));
}

TEST_F(TrialHistoryTest, AStageThatRanOutAtTheSmallestMicroBatchIsHopeless) {
  TrialHistory history(study_);
  EXPECT_FALSE(history.hopeless(history.setup(config(1))));
  history.learn(0, config(1), Outcome::out_of_memory, std::nullopt, std::nullopt);
  EXPECT_TRUE(history.hopeless(history.setup(config(1))));
  EXPECT_FALSE(history.hopeless(history.setup(config(1, 500000000, 2))));
}

// What is kept of many trials bounds every configuration as tightly as all of them would.
TEST_F(TrialHistoryTest, BoundsOfManyTrialsAreThoseOfAllOfThem) {
  constexpr int64_t kBuckets[] = {1000000, 5000000, 50000000, 200000000, 500000000};
  struct Tried {
    int64_t micro_batch, bucket;
    int stage;
    bool fitted;
  };
  std::vector<Tried> all;
  TrialHistory history(study_);
  for (uint64_t i = 0; i < 400; ++i) {
    Random random(7, i);
    Tried tried{static_cast<int64_t>(1 + random.uniform_below(200)), kBuckets[random.uniform_below(5)],
                static_cast<int>(1 + random.uniform_below(3)), false};
    tried.fitted = tried.micro_batch < 100 * tried.stage - tried.bucket / 10000000;
    all.push_back(tried);
    history.learn(i, config(tried.micro_batch, tried.bucket, tried.stage),
                  tried.fitted ? Outcome::completed : Outcome::out_of_memory, std::nullopt, std::nullopt);
    if (i % 20 != 19) continue;
    for (const int64_t bucket : kBuckets) {
      for (const int stage : {1, 2, 3}) {
        int64_t fits = 0, too_big = 1000;
        for (const Tried& t : all) {
          if (t.stage != stage) continue;
          if (t.fitted && t.bucket >= bucket) fits = std::max(fits, t.micro_batch);
          if (!t.fitted && t.bucket <= bucket) too_big = std::min(too_big, t.micro_batch);
        }
        const Ceiling known = ceiling(history, config(1, bucket, stage));
        EXPECT_EQ(known.fits, fits);
        EXPECT_EQ(known.too_big.value_or(1000), too_big);
      }
    }
  }
}

TEST_F(TrialHistoryTest, WhatIsLearntDoesNotHangOnHowItCame) {
  TrialHistory one_by_one(study_);
  Json observations = Json::array();
  for (uint64_t i = 0; i < 300; ++i) {
    const int64_t bucket = 1000000 * static_cast<int64_t>(1 + i % 97);
    const Json tried = config(static_cast<int64_t>(1 + i * 7 % 90), bucket, static_cast<int>(1 + i % 3));
    const bool fits = surface_.fits(tried);
    const double speed = surface_.throughput(tried), peak = surface_.peak(tried);
    observations.push_back({{"trial", i},
                            {"config", tried},
                            {"outcome", fits ? "completed" : "out_of_memory"},
                            {"metrics", fits ? Json{{"throughput", speed}} : Json()},
                            {"peak_bytes", fits ? Json(peak) : Json()}});
    one_by_one.learn(i, tried, fits ? Outcome::completed : Outcome::out_of_memory,
                     fits ? std::optional<double>(speed) : std::nullopt,
                     fits ? std::optional<double>(peak) : std::nullopt);
    ceiling(one_by_one, config(1));  // asked for in between: a fit is made whenever it is due
  }
  study_.observations = observations;
  const TrialHistory at_once(study_);
  for (const int stage : {1, 2, 3}) {
    const Ceiling a = ceiling(one_by_one, config(1, 30000000, stage)), b = ceiling(at_once, config(1, 30000000, stage));
    EXPECT_EQ(a.certain, b.certain);
    EXPECT_EQ(a.likely, b.likely);
    EXPECT_EQ(a.possible, b.possible);
    EXPECT_EQ(one_by_one.best_of(stage)->trial, at_once.best_of(stage)->trial);
  }
}

// Thousands of setups do not fit the window: those that were seen last say what a ceiling is.
TEST_F(TrialHistoryTest, AfterThousandsOfTrialsACeilingIsStillTheMemorys) {
  TrialHistory history(study_);
  for (uint64_t i = 0; i < 3000; ++i) {
    const Json tried = config(static_cast<int64_t>(1 + i % 40), 1000000 + 100000 * static_cast<int64_t>(i), 2);
    history.learn(i, tried, Outcome::completed, 1.0, surface_.peak(tried));
  }
  tests::Surface usable = surface_;  // contexts and fragments are expected to take the rest of a device
  usable.device_memory *= 0.955;
  int64_t largest = 1;
  while (usable.fits(config(largest + 1, 150000000, 2))) ++largest;
  EXPECT_NEAR(ceiling(history, config(1, 150000000, 2)).likely, static_cast<double>(largest), 1);
}

TEST_F(TrialHistoryTest, MemoryThatDoesNotGrowWithTheMicroBatchFoundsNoCeiling) {
  study_.profile["activation_bytes_per_sample"] = {{"value", 0}, {"low", 0}, {"high", 1}};
  TrialHistory history(study_);
  for (const int64_t samples : {2, 16}) {
    history.learn(static_cast<TrialId>(samples), config(samples), Outcome::completed, 1.0, 4e9);
  }
  const Ceiling known = ceiling(history, config(1));
  const double most = 64 * std::max(16.0, known.certain);
  EXPECT_LE(known.likely, most);
  EXPECT_LE(known.possible, most);
  EXPECT_GE(known.likely, 16);
}

// Else each stage would climb from the smallest micro batch anew.
TEST_F(TrialHistoryTest, WithoutAKnownMemoryWhatOneStageShowedHoldsForOthersByTheirOrder) {
  study_.device_memory_bytes.reset();
  study_.profile["device_memory_bytes"] = nullptr;
  TrialHistory history(study_);
  history.learn(0, config(40, 500000000, 1), Outcome::completed, 1.0, std::nullopt);
  history.learn(1, config(90, 500000000, 3), Outcome::out_of_memory, std::nullopt, std::nullopt);
  EXPECT_EQ(ceiling(history, config(1, 500000000, 2)).likely, 40);
  EXPECT_EQ(ceiling(history, config(1, 500000000, 2)).possible, 90);
  EXPECT_EQ(ceiling(history, config(1, 500000000, 1)).possible, 90);
  EXPECT_EQ(ceiling(history, config(1, 500000000, 3)).likely, 40);
  history.learn(2, config(60, 500000000, 2), Outcome::completed, 1.0, std::nullopt);
  EXPECT_EQ(ceiling(history, config(1, 500000000, 1)).likely, 40) << "a lower stage holds more";
}

TEST_F(TrialHistoryTest, AnObservationThatIsMalformedIsAnError) {
  study_.observations = Json::array({{{"trial", 1}}});
  EXPECT_ANY_THROW(TrialHistory{study_});
}

}  // namespace
}  // namespace dsat::search
