// What is printed while a study runs, where there is no terminal.
#include "terminal/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "captured.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
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

TEST(LiveProgress, WritesALineForEachTrialWhereThereIsNoTerminal) {
  Captured captured;
  LiveProgress progress(captured.console, settings());
  progress.on_trial_started(trial(0, host::Outcome::completed));
  EXPECT_EQ(captured.out(), "");
  progress.on_trial_ended(trial(0, host::Outcome::out_of_memory));
  EXPECT_EQ(captured.out(), "trial  0  stage 2  micro batch    8  out of memory\n");
}

TEST(LiveProgress, VerboseAddsTheReasonInOneLine) {
  Captured captured;
  ProgressSettings verbose = settings();
  verbose.verbose = true;
  LiveProgress progress(captured.console, verbose);
  host::TrialRecord record = trial(0, host::Outcome::failed);
  record.reason = "first\nsecond\x1b[2J";
  progress.on_trial_ended(record);
  EXPECT_THAT(captured.out(), HasSubstr("failed, first second\n"));
}

TEST(LiveProgress, QuietLeavesWarnings) {
  Captured captured;
  LiveProgress progress(captured.console, settings(true));
  progress.on_log(Severity::info, "hello");
  progress.on_log(Severity::warning, "careful");
  progress.on_profile(Json{{"num_params", 1e6}});
  progress.on_trial_ended(trial(0, host::Outcome::completed));
  EXPECT_EQ(captured.out(), "warning: careful\n");
}

TEST(LiveProgress, KeepsErrorsForTheReport) {
  Captured captured;
  LiveProgress progress(captured.console, settings());
  progress.on_log(Severity::error, "  line one");
  progress.on_log(Severity::error, "  line\ttwo");
  EXPECT_EQ(captured.out() + captured.err(), "");
  EXPECT_THAT(progress.errors(), ElementsAre("  line one", "  line two"));
}

TEST(LiveProgress, DebugMessagesAreNotShown) {
  Captured captured;
  LiveProgress progress(captured.console, settings());
  progress.on_log(Severity::debug, "detail");
  progress.on_log(Severity::info, "hello");
  EXPECT_EQ(captured.out(), "hello\n");
}

TEST(LiveProgress, UnderJsonEverythingGoesToStandardError) {
  Captured captured;
  captured.console.reserve_stdout_for_json();
  LiveProgress progress(captured.console, settings());
  progress.on_log(Severity::info, "hello");
  EXPECT_EQ(captured.out(), "");
  EXPECT_EQ(captured.err(), "hello\n");
}

TEST(LiveProgress, CountsTrialsThatWereStarted) {
  Captured captured;
  LiveProgress progress(captured.console, settings());
  EXPECT_EQ(progress.status(), "0/16 trials, 0 running, best none yet");
  progress.on_trial_started(trial(0, host::Outcome::completed));
  progress.on_trial_started(trial(0, host::Outcome::completed));  // run again on another port
  progress.on_trial_started(trial(1, host::Outcome::completed));
  EXPECT_EQ(progress.status(), "0/16 trials, 2 running, best none yet");
  progress.on_trial_ended(trial(0, host::Outcome::completed));
  host::TrialRecord never_started = trial(2, host::Outcome::invalid_config);
  never_started.attempt = 0;
  progress.on_trial_ended(never_started);
  EXPECT_THAT(progress.status(), StartsWith("1/16 trials, 1 running"));
}

TEST(LiveProgress, NamesTheBestSoFar) {
  Captured captured;
  LiveProgress progress(captured.console, settings());
  host::BestRecord best;
  best.trial = 3;
  best.metric = 12.3e9;
  best.config = trial(3, host::Outcome::completed).config;
  progress.on_best(best);
  EXPECT_THAT(progress.status(),
              AllOf(HasSubstr("best 12.3 GFLOP/s"), HasSubstr("micro batch 8"), HasSubstr("trial 3")));
}

host::StudyFacts facts_of(uint64_t baseline, const std::vector<std::optional<double>>& values) {
  host::StudyFacts facts;
  facts.baseline = baseline;
  for (const std::optional<double>& value : values) {
    facts.trials.emplace_back();
    facts.trials.back().value = value;
  }
  return facts;
}

TEST(LiveProgress, TellsTheDistanceToYourOwnConfigurationWhateverTrialMeasuredIt) {
  Captured captured;
  LiveProgress progress(captured.console, settings());
  host::BestRecord best;
  best.metric = 12e9;
  best.config = trial(0, host::Outcome::completed).config;
  progress.on_best(best);
  progress.take_own(host::StudyFacts());
  progress.take_own(facts_of(0, {std::nullopt, 6e9}));
  EXPECT_THAT(progress.status(), Not(HasSubstr("against your own"))) << "nothing has measured it";
  progress.take_own(facts_of(1, {std::nullopt, 6e9}));
  EXPECT_THAT(progress.status(), EndsWith("+100.0 % against your own"));
}

TEST(LiveProgress, CountsTrialsOfBeforeAResume) {
  Captured captured;
  LiveProgress progress(captured.console, settings());
  host::StudyRecord record;
  record.trials = {trial(0, host::Outcome::completed), trial(1, host::Outcome::failed)};
  host::TrialRecord open = trial(2, host::Outcome::completed);
  open.outcome.reset();
  record.trials.push_back(open);
  progress.count_earlier(record);
  EXPECT_EQ(progress.status(), "2/16 trials, 0 running, best none yet");
  progress.on_trial_started(open);
  progress.on_trial_ended(trial(2, host::Outcome::completed));
  EXPECT_THAT(progress.status(), StartsWith("3/16 trials, 0 running"));
}

}  // namespace
}  // namespace dsat::cli
