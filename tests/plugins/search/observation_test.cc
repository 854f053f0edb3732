// Which observations show something about training, and what is read from them.
// Observations as the host writes them, with one thing changed in each test.
#include "search/observation.h"

#include "support/error_of.h"

namespace dsat::search {
namespace {

Json observation(const std::string& outcome) {
  return {{"trial", 7},
          {"config", {{"train_micro_batch_size_per_gpu", 4}}},
          {"outcome", outcome},
          {"metrics", {{"throughput", 12.5}, {"note", "fast"}}},
          {"peak_bytes", 3e9}};
}

std::optional<ObservedTrial> training_trial(const Json& observation) {
  Study study;
  study.observations = Json::array({observation});
  const std::vector<ObservedTrial> trials = training_trials(study);
  return trials.empty() ? std::nullopt : std::optional<ObservedTrial>(trials.front());
}

TEST(TrainingTrial, GivesTheNumbersThatTheTrialReported) {
  const auto trial = training_trial(observation("completed"));
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->trial, 7u);
  EXPECT_EQ(trial->outcome, Outcome::completed);
  EXPECT_EQ(trial->micro_batch, 4);
  EXPECT_EQ(trial->metric("throughput"), 12.5);
  EXPECT_EQ(trial->metric("latency"), std::nullopt);
  EXPECT_EQ(trial->metric("note"), std::nullopt);
  EXPECT_EQ(trial->peak_bytes, 3e9);
}

TEST(TrainingTrial, FailuresCountAndTrialsThatWereLostDoNot) {
  EXPECT_EQ(training_trial(observation("out_of_memory"))->outcome, Outcome::out_of_memory);
  EXPECT_EQ(training_trial(observation("failed"))->outcome, Outcome::failed);
  EXPECT_EQ(training_trial(observation("timed_out"))->outcome, Outcome::timed_out);
  for (const char* outcome : {"lost", "stopped"}) EXPECT_FALSE(training_trial(observation(outcome)));
}

TEST(TrainingTrial, ASingleForwardPassIsNoTraining) {
  Json information = observation("completed");
  information["metrics"] = {{"num_params", 1e8}};
  EXPECT_FALSE(training_trial(information));
}

TEST(TrainingTrial, ATrialWithoutMetricsOrPeakIsRead) {
  Json silent = observation("completed");
  silent["metrics"] = nullptr;
  silent["peak_bytes"] = nullptr;
  const auto trial = training_trial(silent);
  ASSERT_TRUE(trial);
  EXPECT_FALSE(trial->metric("throughput"));
  EXPECT_FALSE(trial->peak_bytes);
}

TEST(TrainingTrial, AConfigurationThatNoModelCanReadShowsNothing) {
  const Json wrong[] = {{{"zero_optimization", {{"reduce_bucket_size", -1}}}},
                        {{"zero_optimization", {{"stage", "2"}}}},
                        {{"optimizer", {{"type", 5}}}},
                        {{"train_micro_batch_size_per_gpu", 2.5}},
                        {{"train_micro_batch_size_per_gpu", 0}}};
  for (const Json& config : wrong) {
    for (const char* outcome : {"completed", "invalid_config"}) {
      Json unreadable = observation(outcome);
      unreadable["config"] = config;
      EXPECT_FALSE(training_trial(unreadable)) << config;
    }
  }
}

TEST(TrainingTrial, AnObservationWithoutAnOutcomeIsRefused) {
  Json damaged = observation("completed");
  damaged.erase("outcome");
  EXPECT_THAT(error_of([&] { training_trial(damaged); }), ::testing::HasSubstr("no 'outcome'"));
}

}  // namespace
}  // namespace dsat::search
