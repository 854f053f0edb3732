// Which failures end a study, and which have a second run. The watch gets trials made by hand, in the order of their
// delivery.
#include "study/watch/failure_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/config/batch.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Trial ended(uint64_t id, Outcome outcome, const std::string& last_line, int64_t micro_batch) {
  Trial trial;
  trial.record.id = id;
  trial.record.outcome = outcome;
  trial.record.reason = last_line;
  trial.record.config = {{config::kMicroBatchKey, micro_batch}};
  trial.end.emplace();
  trial.end->last_line = last_line;
  return trial;
}

TrialEnd failure(uint64_t id, const std::string& last_line) {
  TrialEnd end;
  end.id = id;
  end.reason = end.last_line = last_line;
  return end;
}

TrialEnd end_of(const Trial& trial) {
  TrialEnd end;
  static_cast<EndDetails&>(end) = *trial.end;
  end.id = trial.id();
  end.reason = trial.record.reason;
  return end;
}

// What the watch says after the last of these trials.
std::optional<std::string> reason_after(const std::vector<Trial>& trials) {
  FailureWatch watch;
  for (const Trial& trial : trials) watch.add(trial);
  return watch.reason_to_end(trials.back());
}

TEST(FailureWatchTest, ThreeFailuresInARowWithOneLastLineEndTheStudy) {
  EXPECT_THAT(reason_after({ended(0, Outcome::failed, "NameError", 1), ended(1, Outcome::failed, "NameError", 2),
                            ended(2, Outcome::failed, "NameError", 1)})
                  .value(),
              AllOf(StartsWith("3 trials "), EndsWith(": NameError")));
}

TEST(FailureWatchTest, OneMicroBatchAnotherLineOrAnotherOutcomeSaysNothingOfTheScript) {
  const Trial first = ended(0, Outcome::failed, "NameError", 1), second = ended(1, Outcome::failed, "NameError", 2);
  EXPECT_FALSE(reason_after({first, second}));
  EXPECT_FALSE(
      reason_after({first, ended(1, Outcome::failed, "NameError", 1), ended(2, Outcome::failed, "NameError", 1)}));
  EXPECT_FALSE(reason_after({first, second, ended(2, Outcome::failed, "OSError", 3)}));
  EXPECT_FALSE(reason_after({first, second, ended(2, Outcome::failed, "", 3)}));
  EXPECT_FALSE(reason_after(
      {first, second, ended(2, Outcome::out_of_memory, "NameError", 3), ended(3, Outcome::failed, "NameError", 4)}));
}

TEST(FailureWatchTest, DuplicatesNeitherCountNorInterrupt) {
  Trial duplicate = ended(2, Outcome::completed, "", 8);
  duplicate.record.duplicate_of = 0;
  EXPECT_TRUE(reason_after({ended(0, Outcome::failed, "NameError", 1), ended(1, Outcome::failed, "NameError", 2),
                            duplicate, ended(3, Outcome::failed, "NameError", 4)}));
}

TEST(FailureWatchTest, AProfileTrialThatFailsEndsTheStudyAtOnce) {
  for (const Outcome outcome : {Outcome::failed, Outcome::timed_out}) {
    Trial trial = ended(0, outcome, "no such file", 1);
    trial.record.kind = TrialKind::profile;
    EXPECT_THAT(reason_after({trial}).value(), AllOf(StartsWith("the profile trial"), HasSubstr("no such file")));
  }
  Trial full = ended(0, Outcome::out_of_memory, "CUDA out of memory", 1);
  full.record.kind = TrialKind::profile;
  EXPECT_FALSE(reason_after({full})) << "the profiler knows what to do";
}

TEST(FailureWatchTest, ForATrainerWithBatchSizesOfItsOwnTheLineNamesTheirPlace) {
  Trial profile = ended(0, Outcome::failed, "- ds a=1 vs hf a=8, values that mismatch TrainingArguments values", 1);
  profile.record.kind = TrialKind::profile;
  EXPECT_THAT(reason_after({profile}).value(), EndsWith("put --per_device_train_batch_size N into COMMAND"));
}

TEST(FailureWatchTest, AProfileTrialBelowTheUsersOwnMicroBatchEndsNothing) {
  FailureWatch watch(4);
  Trial one = ended(0, Outcome::failed, "more than 1 value", 1), own = ended(1, Outcome::failed, "NameError", 4);
  for (Trial* trial : {&one, &own}) trial->record.kind = TrialKind::profile;
  watch.add(one);
  EXPECT_FALSE(watch.reason_to_end(one)) << "the model may need more than one sample";
  watch.add(own);
  EXPECT_THAT(watch.reason_to_end(own).value(), AllOf(HasSubstr("profile trial"), EndsWith(": NameError")));
  one.record.outcome = Outcome::timed_out;
  EXPECT_TRUE(watch.reason_to_end(one)) << "a larger one takes longer";
}

TEST(FailureWatchTest, WithoutAnOwnMicroBatchTheReasonNamesTheOption) {
  Trial trial = ended(0, Outcome::failed, "ValueError: more than 1 value", 1);
  trial.record.kind = TrialKind::profile;
  EXPECT_THAT(reason_after({trial}).value(), AllOf(HasSubstr("more than 1 value"), HasSubstr("--min-micro-batch")));
}

TEST(FailureWatchTest, WhatNoMicroBatchMendsNamesNoOption) {
  for (const char* line : {"NameError: name 'modle' is not defined", "ModuleNotFoundError: No module named 'dsat'",
                           "python3: can't open file 'trian.py'", "killed by signal 11 (Segmentation fault)",
                           "RuntimeError: CUDA error: no kernel image is available",
                           "pydantic_core.ValidationError: 1 validation error for DeepSpeedZeroConfig",
                           "torchrun failed by itself: AttributeError: 'get'"}) {
    Trial trial = ended(0, Outcome::failed, line, 1);
    trial.record.reason = line;
    trial.record.kind = TrialKind::profile;
    EXPECT_THAT(reason_after({trial}).value(), AllOf(HasSubstr("profile trial"), EndsWith(line)));
  }
}

TEST(FailureWatchTest, ALaterProfileTrialThatFailsIsThatTrialsFailure) {
  Trial information = ended(0, Outcome::completed, "", 1), measured = ended(1, Outcome::failed, "IndexError", 4);
  information.model_info = true;
  for (Trial* trial : {&information, &measured}) trial->record.kind = TrialKind::profile;
  EXPECT_FALSE(reason_after({information, measured}));
}

TEST(FailureWatchTest, FailuresThatPrintNothingAreAlikeByTheirReason) {
  std::vector<Trial> trials;
  for (uint64_t id = 0; id < 3; ++id) {
    trials.push_back(ended(id, Outcome::failed, "", static_cast<int64_t>(id) + 1));
    trials.back().record.reason = "the script ended before the profile window did";
  }
  EXPECT_THAT(reason_after(trials).value(), AllOf(StartsWith("3 trials "), EndsWith("profile window did")));
  FailureWatch watch;
  EXPECT_TRUE(watch.grant_restart(end_of(trials[0]), 5));
  watch.add(trials[0]);
  EXPECT_FALSE(watch.grant_restart(end_of(trials[1]), 5)) << "one has failed for good in the same way";
}

TEST(FailureWatchTest, OfTrialsThatEndedWithStatusZeroTheReasonsAreCompared) {
  std::vector<Trial> trials;
  for (uint64_t id = 0; id < 3; ++id) {
    trials.push_back(ended(id, Outcome::failed, fmt::format("step {}", id), static_cast<int64_t>(id) + 1));
    trials.back().end->exit_code = 0;
    trials.back().record.reason = "the script ended before the profile window did";
  }
  EXPECT_THAT(reason_after(trials).value(), AllOf(StartsWith("3 trials "), EndsWith("profile window did")));
}

TEST(FailureWatchTest, TimeLimitsThatArePassedEndAStudyInWhichNothingTrained) {
  std::vector<Trial> trials;
  for (uint64_t id = 0; id < 3; ++id) {
    trials.push_back(ended(id, Outcome::timed_out, fmt::format("step {}", id), static_cast<int64_t>(id) + 1));
    trials.back().record.reason = "ran longer than 30 min";
  }
  EXPECT_THAT(reason_after(trials).value(), AllOf(StartsWith("3 trials "), EndsWith(": ran longer than 30 min")));
  trials.insert(trials.begin(), ended(7, Outcome::completed, "", 2));
  EXPECT_FALSE(reason_after(trials)) << "the others are slow";
}

// A value of an axis may be the cause: an extension that does not compile here.
TEST(FailureWatchTest, WhereOneAsLargeRanMoreFailuresAreAsked) {
  std::vector<Trial> trials{ended(0, Outcome::completed, "", 2)};
  for (uint64_t id = 1; id < 8; ++id) {
    trials.push_back(ended(id, Outcome::failed, "cannot compile", static_cast<int64_t>(id % 2) + 1));
  }
  EXPECT_FALSE(reason_after(trials));
  trials.push_back(ended(8, Outcome::failed, "cannot compile", 1));
  EXPECT_THAT(reason_after(trials).value(), AllOf(StartsWith("8 trials "), EndsWith(": cannot compile")));
}

TEST(FailureWatchTest, WhereOneAsLargeRanThereIsNoCeiling) {
  FailureWatch watch;
  for (const Trial& trial : {ended(0, Outcome::completed, "", 1), ended(1, Outcome::completed, "", 32),
                             ended(2, Outcome::failed, "no device", 12), ended(3, Outcome::failed, "no device", 40)}) {
    watch.add(trial);
    EXPECT_FALSE(watch.ceiling(trial)) << trial.id();
  }
}

TEST(FailureWatchTest, ACheckpointThatATrialLeftIsNoCeiling) {
  std::vector<Trial> trials{ended(0, Outcome::completed, "", 1)};
  for (uint64_t id = 1; id < 4; ++id) {
    trials.push_back(ended(id, Outcome::failed, "AttributeError", static_cast<int64_t>(id) + 1));
    trials.back().record.reason = "it goes on from a checkpoint";
    trials.back().end->from_checkpoint = true;
  }
  FailureWatch watch;
  for (const Trial& trial : trials) {
    watch.add(trial);
    EXPECT_FALSE(watch.ceiling(trial)) << trial.id();
  }
  EXPECT_THAT(watch.reason_to_end(trials.back()).value(),
              AllOf(StartsWith("3 trials "), EndsWith("from a checkpoint")));
}

TEST(FailureWatchTest, FailuresAboveWhatRanAreACeiling) {
  FailureWatch watch;
  std::vector<std::string> reported;
  for (const Trial& trial : {ended(0, Outcome::completed, "", 1), ended(1, Outcome::completed, "", 128),
                             ended(2, Outcome::failed, "Index", 400), ended(3, Outcome::failed, "Index", 512),
                             ended(4, Outcome::failed, "Index", 301), ended(5, Outcome::failed, "Index", 302)}) {
    watch.add(trial);
    if (const auto text = watch.ceiling(trial)) reported.push_back(*text);
    EXPECT_FALSE(watch.reason_to_end(trial)) << trial.id();
  }
  EXPECT_THAT(reported, ElementsAre(AllOf(StartsWith("trials 2 and 3 "), HasSubstr("(Index)"),
                                          HasSubstr("--max-micro-batch 128"))));
}

TEST(FailureWatchTest, OneForwardPassIsNoTraining) {
  Trial information = ended(0, Outcome::completed, "", 1);
  information.model_info = true;
  EXPECT_TRUE(reason_after({information, ended(1, Outcome::failed, "NameError", 2),
                            ended(2, Outcome::failed, "NameError", 4), ended(3, Outcome::failed, "NameError", 8)}));
}

TEST(FailureWatchTest, ADataSetThatIsTooSmallStaysSo) {
  FailureWatch watch;
  TrialEnd end = failure(1, "");
  end.deviation = Deviation{config::kMicroBatchKey, 200, true};
  EXPECT_FALSE(watch.grant_restart(end, 2));
}

TEST(FailureWatchTest, AConfigurationThatTheEngineRefusesIsRefusedAgain) {
  FailureWatch watch;
  EXPECT_FALSE(watch.grant_restart(failure(1, "deepspeed.DeepSpeedConfigError: no such stage"), 2));
  EXPECT_FALSE(watch.grant_restart(failure(1, "pydantic.ValidationError: 1 validation error for ZeroConfig"), 2));
  EXPECT_TRUE(watch.grant_restart(failure(1, "OSError: the configuration's file system is busy"), 2));
}

TEST(FailureWatchTest, TheProductOfTheBatchSizesIsRefusedByItsTextAlone) {
  const auto refuses = [](const std::string& line) { return refuses_train_batch(failure(1, line)); };
  EXPECT_TRUE(
      refuses("AssertionError: Check batch related parameters. train_batch_size is not equal to "
              "micro_batch_per_gpu * gradient_acc_step * world_size 256 != 4 * 8 * 1"));
  EXPECT_TRUE(refuses("AssertionError: 256 != 4 * 8 * 1"));
  EXPECT_FALSE(refuses("AssertionError: 256 != 4"));
  EXPECT_FALSE(refuses("ValueError: train_batch_size is not a number"));
}

TEST(FailureWatchTest, AFailedTrialRunsAgainAsOftenAsAllowed) {
  FailureWatch watch;
  EXPECT_FALSE(watch.grant_restart(failure(1, "OSError"), 0));
  EXPECT_TRUE(watch.grant_restart(failure(1, "OSError"), 2));
  EXPECT_EQ(watch.take_changed_restarts().value().at(1), 1);
  EXPECT_TRUE(watch.grant_restart(failure(1, "OSError"), 2));
  EXPECT_FALSE(watch.grant_restart(failure(1, "OSError"), 2));
  watch.take_changed_restarts();
  EXPECT_FALSE(watch.take_changed_restarts());
  watch.restore_restarts({{7, 2}});
  EXPECT_FALSE(watch.grant_restart(failure(7, "OSError"), 2));
  watch.add(ended(1, Outcome::failed, "OSError", 4));
  EXPECT_FALSE(watch.grant_restart(failure(2, "OSError"), 2)) << "another trial failed for good in this way";
  EXPECT_TRUE(watch.grant_restart(failure(2, "ValueError"), 2));
}

TEST(FailureWatchTest, EachTrialHasOneSecondRun) {
  FailureWatch watch;
  watch.restore_reruns({3});
  EXPECT_FALSE(watch.take_changed_reruns()) << "the journal has these";
  EXPECT_FALSE(watch.grant_rerun(3));
  EXPECT_TRUE(watch.grant_rerun(1));
  EXPECT_THAT(watch.take_changed_reruns().value(), ElementsAre(1, 3));
  EXPECT_FALSE(watch.take_changed_reruns());
}

}  // namespace
}  // namespace dsat::host
