// Which stage, value or pair is refused after which failures, and when a suspicion was wrong. Trials are made by hand
// and added in the order of their delivery.
#include "study/watch/culprits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kOverlap = "zero_optimization.overlap_comm";
constexpr const char* kScatter = "zero_optimization.reduce_scatter";
constexpr const char* kPrefetch = "zero_optimization.stage3_prefetch_bucket_size";

class CulpritsTest : public ::testing::Test {
 protected:
  CulpritsTest() {
    const std::vector<config::Axis> flags{{kOverlap, {true, false}}, {kScatter, {true, false}}};
    std::vector<config::Axis> of_three = flags;
    of_three.push_back({kPrefetch, {5, 50, 500}});
    space_.stages = {{1, flags}, {2, flags}, {3, of_three}};
  }

  static Json config(int stage, const std::vector<std::pair<std::string, Json>>& values, int64_t micro_batch) {
    Json config{{config::kMicroBatchKey, micro_batch}};
    config::set(config, config::kStageKey, stage);
    for (const auto& [key, value] : values) config::set(config, key, value);
    return config;
  }
  Trial add(Outcome outcome, const Json& config, const std::string& line = "") {
    Trial trial;
    trial.record.id = next_++;
    trial.record.outcome = outcome;
    trial.record.config = config;
    trial.record.reason = line;
    trial.end.emplace();
    trial.end->last_line = line;
    culprits_.add(trial, space_);
    return trial;
  }
  Trial trained(int stage, bool overlap, bool scatter, int64_t micro_batch = 1) {
    return add(Outcome::completed, config(stage, {{kOverlap, overlap}, {kScatter, scatter}}, micro_batch));
  }
  Trial failed(int stage, bool overlap, bool scatter, const std::string& line = "RuntimeError: broken",
               int64_t micro_batch = 1) {
    return add(Outcome::failed, config(stage, {{kOverlap, overlap}, {kScatter, scatter}}, micro_batch), line);
  }
  std::string refusal(int stage, bool overlap, bool scatter) const {
    return culprits_.why_refused(config(stage, {{kOverlap, overlap}, {kScatter, scatter}}, 1), space_);
  }
  bool runs(int stage, bool overlap, bool scatter) const { return refusal(stage, overlap, scatter).empty(); }

  config::Space space_;
  Culprits culprits_;
  uint64_t next_ = 0;
};

TEST_F(CulpritsTest, AStageIsRefusedAfterTwoFailuresAndTheLineNamesItsTrials) {
  trained(1, true, true);
  failed(2, true, false);
  EXPECT_TRUE(runs(2, true, true)) << "one failure proves nothing";
  trained(3, false, false);
  failed(2, false, true);
  EXPECT_THAT(refusal(2, true, true),
              AllOf(StartsWith("zero_optimization.stage 2 "), HasSubstr("1, 3"), HasSubstr("RuntimeError: broken")));
  EXPECT_TRUE(runs(1, true, false));
  EXPECT_TRUE(runs(3, true, true));
  EXPECT_THAT(culprits_.take_news(), ElementsAre(HasSubstr("stage 2")));
  EXPECT_THAT(culprits_.take_news(), IsEmpty());
}

TEST_F(CulpritsTest, WhatHappensBetweenTwoFailuresDoesNotCount) {
  failed(2, true, true, "OSError: one");
  add(Outcome::out_of_memory, config(1, {{kOverlap, true}}, 1), "out of memory");
  failed(3, true, true, "ValueError: three");
  add(Outcome::out_of_memory, config(1, {{kOverlap, false}}, 1), "out of memory");
  failed(2, false, false, "OSError: one");
  failed(3, false, false, "ValueError: three");
  EXPECT_FALSE(runs(2, true, false));
  EXPECT_FALSE(runs(3, true, false));
  EXPECT_THAT(culprits_.found(), ElementsAre(HasSubstr("OSError: one"), HasSubstr("ValueError: three")));
}

TEST_F(CulpritsTest, AValueIsRefusedAtEveryStage) {
  trained(1, true, true);
  trained(2, true, true);
  failed(1, false, true);
  failed(2, false, true);
  EXPECT_THAT(refusal(3, false, true), StartsWith(kOverlap));
  EXPECT_TRUE(runs(2, true, true));
  EXPECT_TRUE(runs(2, true, false));
}

TEST_F(CulpritsTest, APairIsRefusedWhereEachOfItsPartsWorks) {
  trained(1, true, true);
  trained(2, true, false);
  trained(2, false, true);
  failed(2, false, false);
  failed(2, false, false);
  EXPECT_THAT(refusal(2, false, false), HasSubstr(" with "));
  EXPECT_FALSE(runs(1, false, false));
  EXPECT_TRUE(runs(2, true, false));
  EXPECT_TRUE(runs(2, false, true));
}

// With several suspects the stage comes first, and a trial of the stage without the others shows who it was.
TEST_F(CulpritsTest, OfSeveralSuspectsOneAtATimeMayRun) {
  failed(2, true, true);
  failed(2, true, true);
  EXPECT_FALSE(runs(2, true, true));
  EXPECT_FALSE(runs(2, true, false));
  EXPECT_TRUE(runs(2, false, false));
  EXPECT_TRUE(runs(1, true, true));
  EXPECT_THAT(culprits_.found(), IsEmpty()) << "nothing is certain";
  failed(2, false, false);
  EXPECT_FALSE(runs(2, false, false));
  EXPECT_THAT(culprits_.found(), ElementsAre(StartsWith("zero_optimization.stage 2 ")));
}

TEST_F(CulpritsTest, ATrialThatTrainsClearsItsStageAndValues) {
  failed(2, true, true);
  failed(2, true, true);
  trained(2, false, false);
  EXPECT_TRUE(runs(2, false, true));
  trained(1, true, false);
  EXPECT_TRUE(runs(2, true, false)) << "scatter is what is left";
  EXPECT_FALSE(runs(1, false, true));
}

// A failure without the suspect shifts the suspicion.
TEST_F(CulpritsTest, AWrongSuspicionIsTakenBack) {
  trained(1, true, true);
  failed(3, false, true);
  failed(3, false, false);
  trained(3, true, true);
  EXPECT_THAT(refusal(1, false, true), StartsWith(kOverlap));
  failed(1, true, false);
  failed(2, true, false);
  EXPECT_THAT(refusal(1, true, false), HasSubstr(kScatter));
}

// Each of a stage's values may be the cause, and some of them no other stage has.
TEST_F(CulpritsTest, AStageIsNotLostForAValueThatItAloneHas) {
  const auto three = [](int64_t prefetch, bool overlap) {
    return config(3, {{kPrefetch, prefetch}, {kOverlap, overlap}}, 1);
  };
  trained(1, true, true);
  trained(1, false, false);
  add(Outcome::failed, three(500, true), "RuntimeError: prefetch");
  add(Outcome::failed, three(500, false), "RuntimeError: prefetch");
  EXPECT_NE(culprits_.why_refused(three(500, true), space_), "");
  EXPECT_EQ(culprits_.why_refused(three(50, true), space_), "");
  add(Outcome::completed, three(50, true));
  EXPECT_EQ(culprits_.why_refused(three(5, true), space_), "");
  EXPECT_THAT(culprits_.why_refused(three(500, true), space_), StartsWith(kPrefetch));
}

TEST_F(CulpritsTest, TwoCulpritsOfOneTextAreDistinguished) {
  trained(1, true, true);
  failed(2, true, true);
  failed(1, true, false);
  failed(2, true, true);
  failed(3, true, false);
  trained(3, true, true);
  EXPECT_THAT(refusal(2, true, true), StartsWith("zero_optimization.stage 2 "));
  EXPECT_THAT(refusal(3, true, false), StartsWith(kScatter));
  EXPECT_TRUE(runs(1, true, true));
}

TEST_F(CulpritsTest, NumbersMakeNoDifferenceBetweenTexts) {
  trained(1, true, true);
  trained(1, false, false);
  failed(2, true, false, "AssertionError: 256 != 4 * 8 at 0x7fdeadbeef");
  failed(2, false, true, "AssertionError: 64 != 16 * 8 at 0x5512ab");
  EXPECT_FALSE(runs(2, true, true));
  EXPECT_TRUE(runs(3, true, true));
}

TEST_F(CulpritsTest, OtherTextsAreOtherFailures) {
  trained(1, true, true);
  trained(1, false, false);
  failed(2, true, false, "RuntimeError: this");
  failed(2, false, true, "RuntimeError: that");
  EXPECT_TRUE(runs(2, true, true));
}

// A data set of 20 samples: the size is the cause, whatever else these trials have in common.
TEST_F(CulpritsTest, FailuresBeyondAllThatTrainedMayBeOfTheirSize) {
  trained(1, true, true, 16);
  failed(2, false, false, "IndexError", 32);
  failed(2, false, false, "IndexError", 24);
  EXPECT_TRUE(runs(2, false, false));
  trained(1, true, true, 64);
  EXPECT_FALSE(runs(2, false, false)) << "the size is not the cause";
}

TEST_F(CulpritsTest, ASizeThatFailedThriceIsRefusedUntilALargerOneTrains) {
  const auto at = [&](int64_t micro_batch) {
    return culprits_.why_refused(config(1, {{kOverlap, true}, {kScatter, true}}, micro_batch), space_);
  };
  trained(1, true, true, 16);
  trained(2, true, true, 16);
  failed(2, true, true, "IndexError", 64);
  failed(1, true, true, "IndexError", 32);
  EXPECT_EQ(at(48), "");
  failed(1, true, true, "IndexError", 40);
  EXPECT_THAT(at(32), AllOf(HasSubstr("from 32 on"), HasSubstr("IndexError")));
  EXPECT_EQ(at(31), "");
  trained(2, true, true, 128);
  EXPECT_EQ(at(64), "");
}

TEST_F(CulpritsTest, AKeyThatIsLeftOutHasTrainedWithItsDefault) {
  add(Outcome::completed, config(2, {}, 4));  // reduce_scatter is true then
  for (const int64_t micro_batch : {128, 97, 83}) failed(2, true, true, "ValueError: a batch of 128", micro_batch);
  EXPECT_EQ(refusal(2, false, true), "") << "what they share beyond what trained is overlap_comm, and their size";
  add(Outcome::completed, config(1, {}, 4));
  failed(3, true, true, "RuntimeError: broken", 4);
  failed(3, false, true, "RuntimeError: broken", 4);
  EXPECT_THAT(refusal(3, false, true), StartsWith("zero_optimization.stage 3 ")) << "stage 1 reads no prefetch bucket";
}

TEST_F(CulpritsTest, BelowAllThatTrainedTheSizeMayBeTooSmall) {
  trained(1, true, true, 16);
  failed(2, false, false, "ValueError: 1 sample", 1);
  failed(2, false, false, "ValueError: 2 samples", 2);
  EXPECT_TRUE(runs(2, false, false));
}

TEST_F(CulpritsTest, CausesThatAreKnownSuspectNothing) {
  trained(1, true, true);
  for (int i = 0; i < 3; ++i) {
    Trial trial;
    trial.record.id = next_++;
    trial.record.outcome = Outcome::failed;
    trial.record.reason = "it goes on from a checkpoint";
    trial.record.config = config(2, {}, 1);
    trial.end.emplace();
    trial.end->from_checkpoint = true;
    culprits_.add(trial, space_);
    trial.end->from_checkpoint = false;
    trial.record.outcome = Outcome::lost;
    culprits_.add(trial, space_);
  }
  EXPECT_TRUE(runs(2, true, true));
}

TEST_F(CulpritsTest, AnErrorOfTheScriptsCodeIsNoStages) {
  trained(1, true, true);
  failed(2, true, true, "NameError: name 'modle' is not defined");
  failed(2, true, true, "NameError: name 'modle' is not defined");
  EXPECT_TRUE(runs(2, true, true));
}

TEST_F(CulpritsTest, EveryStageMayBeACulprit) {
  for (int stage = 1; stage <= 3; ++stage) {
    EXPECT_FALSE(culprits_.refuse_all(space_));
    failed(stage, true, false, "of stage " + std::string(1, static_cast<char>('a' + stage)));
    failed(stage, false, true, "of stage " + std::string(1, static_cast<char>('a' + stage)));
  }
  EXPECT_TRUE(culprits_.refuse_all(space_));
}

TEST_F(CulpritsTest, NothingIsLeftOnceEachValueOfAnAxisIsACulprit) {
  for (const bool overlap : {true, false}) {
    EXPECT_FALSE(culprits_.refuse_all(space_));
    failed(1, overlap, true, overlap ? "OSError: with" : "ValueError: without");
    failed(2, overlap, false, overlap ? "OSError: with" : "ValueError: without");
  }
  EXPECT_TRUE(culprits_.refuse_all(space_));
  EXPECT_THAT(culprits_.found(), ElementsAre(HasSubstr("OSError: with"), HasSubstr("ValueError: without")));
  trained(3, true, true);
  EXPECT_FALSE(culprits_.refuse_all(space_));
}

// Two values of one axis at stage 1, another axis at stage 2: what is left at stage 3 may run.
TEST_F(CulpritsTest, AStageThatHasAValueLeftIsNotRefused) {
  trained(3, true, true);
  failed(2, true, true, "of stage two");
  failed(2, false, false, "of stage two");
  EXPECT_FALSE(culprits_.refuse_all(space_));
  failed(1, true, false, "of stage one");
  failed(1, false, true, "of stage one");
  EXPECT_FALSE(culprits_.refuse_all(space_));
}

TEST_F(CulpritsTest, TheScriptIsToBlameOnceEveryStageHasFailedAlikeWithNothingInCommon) {
  failed(2, true, true);
  EXPECT_FALSE(culprits_.blame_script(failed(3, false, true), space_)) << "scatter is in common, stage 1 is open";
  EXPECT_FALSE(culprits_.blame_script(failed(1, true, true), space_)) << "scatter is in common";
  EXPECT_FALSE(culprits_.blame_script(failed(1, true, false, "OSError"), space_)) << "another text";
  EXPECT_TRUE(culprits_.blame_script(failed(2, true, false), space_));
  trained(2, false, false);
  EXPECT_FALSE(culprits_.blame_script(failed(2, true, false), space_));
}

// A script may have been mended in between: the culprit has one new chance, and is refused at once if it fails again.
TEST_F(CulpritsTest, ANewChanceIsOneTrialForEachCulprit) {
  trained(1, true, true);
  trained(1, false, false);
  for (int i = 0; i < 3; ++i) {
    failed(2, true, true, "OSError: two");
    failed(3, false, false, "OSError: two");
  }
  ASSERT_FALSE(runs(2, true, false));
  ASSERT_FALSE(runs(3, true, false));
  culprits_.give_new_chance();
  EXPECT_TRUE(runs(2, true, false));
  EXPECT_TRUE(runs(3, true, false));
  failed(3, true, false, "OSError: two");
  EXPECT_FALSE(runs(3, true, true));
  EXPECT_TRUE(runs(2, true, false));
  trained(2, true, false);
  EXPECT_TRUE(runs(2, false, true)) << "it was mended";
}

TEST_F(CulpritsTest, ANewChanceIsOneTrialForASize) {
  trained(1, true, true, 16);
  trained(2, true, true, 16);
  for (const int64_t size : {64, 32, 40}) failed(size == 64 ? 2 : 1, true, true, "IndexError", size);
  const auto at = [&](int64_t size) {
    return culprits_.why_refused(config(1, {{kOverlap, true}, {kScatter, true}}, size), space_);
  };
  ASSERT_NE(at(48), "");
  culprits_.give_new_chance();
  EXPECT_EQ(at(48), "");
  failed(2, true, true, "IndexError", 48);
  EXPECT_NE(at(48), "");
}

TEST_F(CulpritsTest, MemoryOfTheHostThatRunsOutIsAFailureAndThatOfADeviceIsNone) {
  trained(1, true, true);
  trained(1, false, false);
  const auto ran_out = [&](bool of_host, bool overlap) {
    Trial trial;
    trial.record.id = next_++;
    trial.record.outcome = Outcome::out_of_memory;
    trial.record.reason = "host memory ran out: MemoryError";
    trial.record.config = config(2, {{kOverlap, overlap}}, 1);
    trial.end.emplace().of_host = of_host;
    culprits_.add(trial, space_);
  };
  ran_out(false, true);
  ran_out(false, false);
  EXPECT_TRUE(runs(2, true, true));
  ran_out(true, true);
  ran_out(true, false);
  EXPECT_THAT(refusal(2, true, true), HasSubstr("host memory ran out"));
}

TEST_F(CulpritsTest, AnotherSearcherBeginsWithoutSuspicions) {
  trained(1, true, true);
  failed(2, true, true);
  const Trial last = failed(2, true, true);
  EXPECT_TRUE(culprits_.suspects_of(last));
  culprits_.forget_failures();
  EXPECT_FALSE(culprits_.suspects_of(last));
  EXPECT_TRUE(runs(2, true, true));
}

TEST_F(CulpritsTest, AConfigurationThatNobodyCanReadIsNobodysFault) {
  Json odd = config(2, {}, 1);
  config::set(odd, config::kStageKey, "seven");
  add(Outcome::failed, odd, "RuntimeError");
  add(Outcome::failed, odd, "RuntimeError");
  EXPECT_EQ(culprits_.why_refused(odd, space_), "");
}

}  // namespace
}  // namespace dsat::host
