// Lines of a running study: one for each trial, and the state line of a terminal.
#include "terminal/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "captured.h"

namespace dsat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Severity = host::Observer::Severity;

host::TrialRecord trial(uint64_t id, host::Outcome outcome) {
  host::TrialRecord record;
  record.id = id;
  record.attempt = 1;
  record.outcome = outcome;
  record.config = Json{{"zero_optimization", {{"stage", 2}}}, {"train_micro_batch_size_per_gpu", 8}};
  return record;
}

ProgressSettings settings(bool quiet = false) {
  ProgressSettings settings;
  settings.metric = "FLOPS_per_gpu";
  settings.max_trials = 16;
  settings.quiet = quiet;
  return settings;
}

TEST(TrialLine, TellsWhatWasTriedAndWhatCameOfIt) {
  host::TrialRecord record = trial(3, host::Outcome::completed);
  record.metrics = Json{{"FLOPS_per_gpu", 12.3e9}};
  record.peak_bytes = 84'100'000;
  record.note = "rung 1";
  EXPECT_EQ(Progress::trial_line(record, "FLOPS_per_gpu"),
            "trial 3 search stage 2 micro batch 8: completed, 12.3 GFLOP/s, peak 84.1 MB (rung 1)");
}

TEST(TrialLine, TellsWhyThereIsNoMetric) {
  host::TrialRecord record = trial(4, host::Outcome::failed);
  record.reason = "exit status 1: NameError";
  EXPECT_EQ(Progress::trial_line(record, "latency"),
            "trial 4 search stage 2 micro batch 8: failed, exit status 1: NameError");
}

TEST(TrialLine, NamesTheTrialThatADuplicateIsAnsweredFrom) {
  host::TrialRecord record = trial(9, host::Outcome::completed);
  record.kind = host::TrialKind::duplicate;
  record.duplicate_of = 3;
  EXPECT_THAT(Progress::trial_line(record, "latency"),
              HasSubstr("duplicate stage 2 micro batch 8: completed, as trial 3"));
}

TEST(Progress, WritesALineForEachTrialWhereThereIsNoTerminal) {
  Captured captured;
  Progress progress(captured.console, settings());
  progress.on_trial_started(trial(0, host::Outcome::completed));
  EXPECT_EQ(captured.out(), "");
  progress.on_trial_ended(trial(0, host::Outcome::out_of_memory));
  EXPECT_EQ(captured.out(), "trial 0 search stage 2 micro batch 8: out_of_memory\n");
}

TEST(Progress, ALineStaysALineWhateverTheScriptSays) {
  Captured captured;
  Progress progress(captured.console, settings());
  host::TrialRecord record = trial(0, host::Outcome::failed);
  record.reason = "first\nsecond\x1b[2J";
  progress.on_trial_ended(record);
  EXPECT_THAT(captured.out(), HasSubstr("first second\n"));
}

TEST(Progress, QuietLeavesWarnings) {
  Captured captured;
  Progress progress(captured.console, settings(true));
  progress.on_log(Severity::info, "hello");
  progress.on_log(Severity::warning, "careful");
  progress.on_profile(Json{{"num_params", 1e6}});
  progress.on_trial_ended(trial(0, host::Outcome::completed));
  EXPECT_EQ(captured.out(), "warning: careful\n");
}

TEST(Progress, KeepsErrorsForTheReport) {
  Captured captured;
  Progress progress(captured.console, settings());
  progress.on_log(Severity::error, "  line one");
  progress.on_log(Severity::error, "  line\ttwo");
  EXPECT_EQ(captured.out() + captured.err(), "");
  EXPECT_THAT(progress.errors(), ElementsAre("  line one", "  line two"));
}

TEST(Progress, DebugMessagesAreNotShown) {
  Captured captured;
  Progress progress(captured.console, settings());
  progress.on_log(Severity::debug, "detail");
  progress.on_log(Severity::info, "hello");
  EXPECT_EQ(captured.out(), "hello\n");
}

TEST(Progress, UnderJsonEverythingGoesToStandardError) {
  Captured captured;
  captured.console.reserve_stdout_for_json();
  Progress progress(captured.console, settings());
  progress.on_log(Severity::info, "hello");
  EXPECT_EQ(captured.out(), "");
  EXPECT_EQ(captured.err(), "hello\n");
}

TEST(StatusLine, CountsTrialsThatWereStarted) {
  Captured captured;
  Progress progress(captured.console, settings());
  EXPECT_EQ(progress.status_line(), "trials 0/16, 0 running");
  progress.on_trial_started(trial(0, host::Outcome::completed));
  progress.on_trial_started(trial(0, host::Outcome::completed));  // run again on another port
  progress.on_trial_started(trial(1, host::Outcome::completed));
  EXPECT_EQ(progress.status_line(), "trials 0/16, 2 running");
  progress.on_trial_ended(trial(0, host::Outcome::completed));
  host::TrialRecord never_started = trial(2, host::Outcome::invalid_config);
  never_started.attempt = 0;
  progress.on_trial_ended(never_started);
  EXPECT_THAT(progress.status_line(), StartsWith("trials 1/16, 1 running, about "));
}

TEST(StatusLine, NamesTheBestSoFar) {
  Captured captured;
  Progress progress(captured.console, settings());
  host::BestRecord best;
  best.trial = 3;
  best.metric = 12.3e9;
  best.config = trial(3, host::Outcome::completed).config;
  progress.on_best(best);
  EXPECT_THAT(progress.status_line(), HasSubstr("best 12.3 GFLOP/s: stage 2, micro batch 8, trial 3"));
}

TEST(StatusLine, TheTimeBudgetBoundsTheTimeLeft) {
  Captured captured;
  ProgressSettings limited = settings();
  limited.time_budget = std::chrono::hours(2);
  const Progress progress(captured.console, limited);
  EXPECT_THAT(progress.status_line(), HasSubstr("about "));
}

TEST(StatusLine, CountsTrialsOfBeforeAResume) {
  Captured captured;
  Progress progress(captured.console, settings());
  host::StudyRecord record;
  record.trials = {trial(0, host::Outcome::completed), trial(1, host::Outcome::failed)};
  progress.count_earlier(record);
  EXPECT_EQ(progress.status_line(), "trials 2/16, 0 running");
}

TEST(ProfileLines, StateModelMemoryActivationsAndCeilings) {
  const auto interval = [](double value) { return Json{{"value", value}, {"low", value / 2}, {"high", value * 2}}; };
  const Json profile{{"num_params", 124e6},
                     {"trainable_num_params", 100e6},
                     {"device_memory_bytes", 80e9},
                     {"activation_bytes_per_sample", interval(2e6)},
                     {"stages",
                      {{{"stage", 1}, {"model_state_bytes", interval(1e9)}, {"max_micro_batch", interval(16)}},
                       {{"stage", 2}, {"model_state_bytes", interval(5e8)}, {"max_micro_batch", nullptr}}}}};
  EXPECT_THAT(profile_lines(profile),
              ElementsAre("model: 124 M parameters, 100 M of them trainable", HasSubstr("device memory: 80"),
                          HasSubstr("activation memory per example: 2"),
                          HasSubstr("approximate maximum micro batch 16"), HasSubstr("maximum micro batch unknown")));
}

TEST(ProfileLines, SayWhatIsUnknown) {
  EXPECT_THAT(profile_lines(Json()), IsEmpty());
  EXPECT_THAT(profile_lines(Json{{"num_params", 5}, {"device_memory_bytes", nullptr}}),
              ElementsAre("model: 5 parameters", "device memory: unknown", "activation memory per example: unknown"));
}

TEST(ProfileLines, ACeilingThatIsAnybodysGuessIsUnknown) {
  const auto line = [](double value, double low) {
    const Json ceiling{{"value", value}, {"low", low}, {"high", 1e9}};
    return profile_lines(Json{{"device_memory_bytes", 1e9}, {"stages", {{{"stage", 1}, {"max_micro_batch", ceiling}}}}})
        .back();
  };
  EXPECT_THAT(line(2.8e7, 191), HasSubstr("maximum micro batch unknown, at least 191"));
  EXPECT_THAT(line(300, 191), HasSubstr("approximate maximum micro batch 300"));
  EXPECT_THAT(line(20, 0), HasSubstr("approximate maximum micro batch 20"));
}

TEST(ProfileLines, WithoutADeviceMemoryACeilingIsOnlyALowerBound) {
  const auto stage = [](int number, double fitted) {
    return Json{{"stage", number}, {"model_state_bytes", 1e9}, {"max_micro_batch", {{"value", fitted}}}};
  };
  EXPECT_THAT(profile_lines(Json{{"device_memory_bytes", nullptr}, {"stages", {stage(1, 4), stage(2, 0)}}}),
              ::testing::IsSupersetOf({std::string("stage 1: model states 1.00 GB, maximum micro batch at least 4"),
                                       std::string("stage 2: model states 1.00 GB, maximum micro batch unknown")}));
}

}  // namespace
}  // namespace dsat::cli
