// The profiler where the user's own configuration fails: it measures another stage with other values.
#include <gtest/gtest.h>

#include "plugins/surface.h"
#include "profiler/profiler.h"

namespace dsat::tests {
namespace {

testing::Answer answer(const Surface& surface, const testing::Trial& trial) {
  return is_model_information(trial) ? surface.model_information(trial) : surface.answer(trial);
}

Study profile_study(const Surface& surface, const std::vector<int>& stages = {1, 2, 3}) {
  Study study = make_study(surface, small_space(stages));
  study.profile = nullptr;
  study.device_memory_bytes.reset();
  study.limits.profile_trials = 3;
  return study;
}

testing::Bench bench(const Study& study, testing::AnswerFunction answer) {
  return testing::Bench(testing::factory<ModelProfiler>(), "profiler", study, std::move(answer));
}

// The user's own stage or a value of theirs may be broken on this machine.
TEST(ProfilerOfOtherValues, WhereTheUsersOwnConfigurationFailsAnotherStageWithOtherValuesIsMeasured) {
  const Surface surface;
  config::Space space = small_space({1, 2, 3});
  for (config::StageSpace& stage : space.stages)
    stage.axes.push_back({"zero_optimization.overlap_comm", {true, false}});
  for (const bool from_the_start : {true, false}) {
    for (const bool is_stage : {true, false}) {
      Study study = profile_study(surface);
      study.space = config::to_json(space);
      study.base_config["zero_optimization"]["overlap_comm"] = true;
      auto run = bench(study, [&](const testing::Trial& trial) {
        const bool is_broken =
            is_stage ? trial.stage() == 1 : trial.config["zero_optimization"]["overlap_comm"] == true;
        const bool fails = is_broken && (from_the_start || !is_model_information(trial));
        return fails ? testing::Answer::failed("RuntimeError: x") : answer(surface, trial);
      });
      ASSERT_TRUE(run.run()) << run.error();
      EXPECT_TRUE(run.profile().is_object()) << run.finish_reason();
      int failed = 0, measured = 0;
      for (const testing::Ended& ended : run.ended()) {
        failed += ended.answer.outcome == Outcome::failed ? 1 : 0;
        measured += ended.answer.outcome == Outcome::completed && !is_model_information(ended.trial) ? 1 : 0;
      }
      EXPECT_LE(failed, 2);
      EXPECT_GE(measured, 1);
    }
  }
}

TEST(ProfilerOfOtherValues, AnErrorOfTheScriptsCodeIsNoValues) {
  const Surface surface;
  auto run = bench(profile_study(surface), [](const testing::Trial&) {
    return testing::Answer::failed("exit status 1: NameError: name 'modle' is not defined");
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.asked().size(), 1u);
}

// Values that clash are refused without a run; the other stage keeps the user's own then.
TEST(ProfilerOfOtherValues, WhereTheOtherValuesAreRefusedTheOtherStageAloneIsMeasured) {
  const Surface surface;
  Study study = profile_study(surface);
  study.base_config["zero_optimization"]["reduce_bucket_size"] = 50000000;
  auto run = bench(study, [&](const testing::Trial& trial) -> testing::Answer {
    if (trial.config["zero_optimization"]["reduce_bucket_size"] != 50000000) {
      return {Outcome::invalid_config, {}, std::nullopt, "they clash"};
    }
    return trial.stage() == 1 ? testing::Answer::failed("RuntimeError: x") : answer(surface, trial);
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.profile().is_object()) << run.finish_reason();
}

}  // namespace
}  // namespace dsat::tests
