// What a plan makes of the number of processes that the profile trial really had.
#include "study/watch/profile_trials.h"

#include "host/study/study_fixture.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;

class WorldSizeTest : public StudyTest {
 protected:
  // A model-information run of so many processes.
  static Trial profile_trial(std::optional<int64_t> processes) {
    Trial trial;
    trial.model_info = true;
    trial.record.config = Json::object();
    trial.end = completed(1);
    trial.end->world_size = processes;
    return trial;
  }
  Plan plan_with(const Json& config, int slots_per_trial = 1) {
    write_text(dir() / "ds_config.json", config.dump());
    StudyOptions options = this->options();
    options.slots_per_trial = slots_per_trial;
    return plan_of(options);
  }
};

TEST_F(WorldSizeTest, BatchSizesFollowTheProcessesThatThereWere) {
  Plan plan = plan_with({{config::kMicroBatchKey, 3}});
  ASSERT_EQ(plan.base_config[config::kTrainBatchKey], 3);
  EXPECT_THAT(follow_world_size(plan, profile_trial(4)), AllOf(HasSubstr("data-parallel size"), HasSubstr("4, not 1")));
  EXPECT_EQ(plan.data_parallel_size, 4);
  EXPECT_EQ(plan.base_config[config::kTrainBatchKey], 12);
  EXPECT_EQ(follow_world_size(plan, profile_trial(4)), "") << "a second trial of that size says nothing new";
}

TEST_F(WorldSizeTest, PipelineStagesTakeTheirShareOfTheProcesses) {
  Plan plan = plan_with({{config::kMicroBatchKey, 3}, {"pipeline", {{"stages", 2}}}}, 2);
  ASSERT_EQ(plan.data_parallel_size, 1);
  follow_world_size(plan, profile_trial(8));
  EXPECT_EQ(plan.data_parallel_size, 4);
}

TEST_F(WorldSizeTest, OnlyAModelInformationRunThatSaysItsSizeCounts) {
  Plan plan = plan_with({{config::kMicroBatchKey, 3}});
  Trial measured = profile_trial(4);
  measured.model_info = false;
  Trial unended = profile_trial(4);
  unended.end.reset();
  for (const Trial& trial : {measured, unended, profile_trial(std::nullopt), profile_trial(0), profile_trial(-2)}) {
    EXPECT_EQ(follow_world_size(plan, trial), "");
  }
  EXPECT_EQ(plan.data_parallel_size, 1);
}

TEST_F(WorldSizeTest, NoticesOfThePlanAreNotGivenTwice) {
  Plan plan = plan_with({{config::kMicroBatchKey, 3}, {"gradient_clipping", "auto"}});
  const std::vector<std::string> notices = plan.notices;
  ASSERT_FALSE(notices.empty());
  follow_world_size(plan, profile_trial(4));
  EXPECT_EQ(plan.notices, notices);
}

TEST_F(WorldSizeTest, ASizeThatTheConfigurationRulesOutIsAnError) {
  Plan pipeline = plan_with({{config::kMicroBatchKey, 3}, {"pipeline", {{"stages", 2}}}}, 2);
  EXPECT_THAT(error_of([&] { follow_world_size(pipeline, profile_trial(3)); }),
              AllOf(HasSubstr("world size"), HasSubstr("3 slots per trial")));
  Plan batch = plan_with({{config::kMicroBatchKey, 3}});
  batch.global_batch = 6;
  EXPECT_THAT(error_of([&] { follow_world_size(batch, profile_trial(4)); }), HasSubstr("--global-batch 6"));
}

TEST_F(WorldSizeTest, ASizeThatTheTrialWasNotGivenIsAnErrorThatSaysWhatToChange) {
  Plan plan = plan_with({{config::kMicroBatchKey, 3}}, 2);
  Trial trial = profile_trial(1);
  trial.record.config = {{"autotuning", {{"num_gpus", 2}, {"num_nodes", 1}}}};
  EXPECT_THAT(error_of([&] { follow_world_size(plan, trial); }),
              AllOf(HasSubstr("with 1 processes"), HasSubstr("2 slots"), HasSubstr("--slots-per-trial 1")));
}

}  // namespace
}  // namespace dsat::host
