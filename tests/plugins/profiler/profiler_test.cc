// The profiler: what it asks for, what profile it makes, and what it does when a trial fails.
// Trials are answered by the simple surface of surface.h.
#include "profiler/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/surface.h"

namespace dsat::tests {
namespace {

using ::testing::HasSubstr;

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
testing::Bench bench(const Surface& surface, const Study& study) {
  return bench(study, [surface](const testing::Trial& trial) { return answer(surface, trial); });
}

TEST(Profiler, AsksForTheModelFirstThenMeasuresTwoSmallMicroBatches) {
  const Surface surface;
  auto run = bench(surface, profile_study(surface));
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_EQ(run.asked().size(), 3u);
  EXPECT_TRUE(is_model_information(run.asked()[0]));
  EXPECT_EQ(run.asked()[0].overrides["train_micro_batch_size_per_gpu"], 1);
  EXPECT_FALSE(run.asked()[0].overrides.contains("zero_optimization"));  // the user's own
  EXPECT_FALSE(is_model_information(run.asked()[1]));
  EXPECT_EQ(run.asked()[1].micro_batch(), 2);
  EXPECT_GT(run.asked()[2].micro_batch(), 2);
  EXPECT_EQ(run.asked()[1].stage(), run.asked()[2].stage());
  EXPECT_TRUE(run.finished());
}

TEST(Profiler, TheProfileFollowsTheSchema) {
  const Surface surface;
  auto run = bench(surface, profile_study(surface));
  ASSERT_TRUE(run.run()) << run.error();
  const Json profile = run.profile();
  EXPECT_EQ(profile.at("schema"), 1);
  EXPECT_EQ(profile.at("num_params"), surface.num_params);
  EXPECT_EQ(profile.at("trainable_num_params"), surface.num_params);
  EXPECT_EQ(profile.at("device_memory_bytes"), surface.device_memory);
  EXPECT_EQ(profile.at("world_size"), surface.world_size);
  EXPECT_EQ(profile.at("trials"), (Json{0, 1, 2}));
  ASSERT_EQ(profile.at("stages").size(), 3u);
  for (const Json* interval : {&profile.at("activation_bytes_per_sample"), &profile.at("fixed_bytes")}) {
    EXPECT_LE(interval->at("low").get<double>(), interval->at("value").get<double>());
    EXPECT_LE(interval->at("value").get<double>(), interval->at("high").get<double>());
  }
  int expected = 1;
  for (const Json& stage : profile.at("stages")) {
    EXPECT_EQ(stage.at("stage"), expected++);
    EXPECT_TRUE(stage.at("model_state_bytes").contains("value"));
    EXPECT_TRUE(stage.at("max_micro_batch").contains("value"));
  }
}

TEST(Profiler, MeasuredPeaksGiveTheSlopeAndTheCeiling) {
  const Surface surface;
  Study study = profile_study(surface);
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_NEAR(run.profile()["activation_bytes_per_sample"]["value"].get<double>(), surface.activation_bytes,
              0.05 * surface.activation_bytes);
  // Contexts and fragments are expected to take the rest of a device.
  Surface usable = surface;
  usable.device_memory *= 0.955;
  int64_t ceiling = 0;
  Json config = study.base_config;
  for (int64_t micro_batch = 1; micro_batch < 200; ++micro_batch) {
    config["train_micro_batch_size_per_gpu"] = micro_batch;
    if (usable.fits(config)) ceiling = micro_batch;
  }
  EXPECT_NEAR(run.profile()["stages"][0]["max_micro_batch"]["value"].get<double>(), static_cast<double>(ceiling), 2);
}

TEST(Profiler, SpendsNoMoreThanItMay) {
  const Surface surface;
  for (const int64_t allowed : {1, 2, 3}) {
    Study study = profile_study(surface);
    study.limits.profile_trials = allowed;
    auto run = bench(surface, study);
    ASSERT_TRUE(run.run()) << run.error();
    EXPECT_EQ(run.asked().size(), static_cast<size_t>(allowed));
    EXPECT_TRUE(run.profile().is_object());
  }
  Study study = profile_study(surface);
  study.limits.max_trials = 2;
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.asked().size(), 2u);
  EXPECT_TRUE(run.profile().is_object());
}

// Its searcher measures more where it matters: the trial is not spent on the beginning of the line.
TEST(Profiler, ATrialThatStaysAloneIsNoneAtTheBeginningOfTheLine) {
  const Surface surface;
  Study study = profile_study(surface);
  study.limits.profile_trials = 2;
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_EQ(run.asked().size(), 2u);
  EXPECT_GT(run.asked()[1].micro_batch(), 4);
  EXPECT_TRUE(surface.fits(run.asked()[1].config));
  EXPECT_NEAR(run.profile()["activation_bytes_per_sample"]["value"].get<double>(), surface.activation_bytes,
              0.25 * surface.activation_bytes);

  Study cut = profile_study(surface);  // of three allowed there is room for two
  cut.limits.max_trials = 2;
  auto short_run = bench(surface, cut);
  ASSERT_TRUE(short_run.run()) << short_run.error();
  EXPECT_EQ(short_run.asked()[1].micro_batch(), run.asked()[1].micro_batch());
}

TEST(Profiler, NumbersThatTheUserGivesSpareTheModelInformationTrial) {
  const Surface surface;
  Study study = profile_study(surface);
  study.base_config["autotuning"]["model_info"] = {{"num_params", surface.num_params}, {"num_layers", 12}};
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  for (const auto& trial : run.asked()) EXPECT_FALSE(is_model_information(trial));
  EXPECT_EQ(run.profile().at("num_params"), surface.num_params);

  study.base_config["autotuning"]["model_info"]["profile"] = true;
  auto profiled = bench(surface, study);
  ASSERT_TRUE(profiled.run()) << profiled.error();
  EXPECT_TRUE(is_model_information(profiled.asked()[0]));
}

TEST(Profiler, NoTrialAtAllIsNoProfile) {
  const Surface surface;
  Study study = profile_study(surface);
  study.limits.max_trials = 0;
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.finished());
  EXPECT_TRUE(run.profile().is_null());
  EXPECT_THAT(run.finish_reason(), HasSubstr("--max-trials"));
}

TEST(Profiler, OutOfMemoryAtTheUsersStageGoesOnAtTheHighest) {
  Surface surface;
  surface.num_params = 1.5e9;
  surface.world_size = 16;
  Study study = profile_study(surface);
  study.limits.data_parallel_size = 16;
  study.base_config["zero_optimization"]["stage"] = 0;
  surface.device_memory = 14e9;
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_GE(run.asked().size(), 2u);
  EXPECT_EQ(run.asked()[0].stage(), 0);
  EXPECT_TRUE(is_model_information(run.asked()[1]));
  EXPECT_EQ(run.asked()[1].stage(), 3);
  EXPECT_EQ(run.asked().size(), 4u);  // still two measured points
  EXPECT_TRUE(run.profile().is_object());
}

TEST(Profiler, AModelThatFitsNowhereIsNoProfile) {
  Surface surface;
  surface.device_memory = 1e8;
  auto run = bench(surface, profile_study(surface));
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.profile().is_null());
  EXPECT_THAT(run.finish_reason(), HasSubstr("does not fit"));
  EXPECT_EQ(run.asked().size(), 2u);
}

TEST(Profiler, WithoutTheModelsSizeItEndsWithThatTrialsReason) {
  const Surface surface;
  auto run = bench(profile_study(surface), [&](const testing::Trial& trial) {
    return is_model_information(trial) ? testing::Answer::failed("NameError: x") : answer(surface, trial);
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.finished());
  EXPECT_TRUE(run.profile().is_null());
  EXPECT_THAT(run.finish_reason(), HasSubstr("NameError: x"));
}

// Batch normalisation needs two samples, experts may need more.
TEST(Profiler, WhereTheSmallestMicroBatchFailsTheUsersOwnIsTheSmallest) {
  const Surface surface;
  Study study = profile_study(surface);
  study.base_config["train_micro_batch_size_per_gpu"] = 4;
  const auto needs = [&surface](int64_t least) {
    return [&surface, least](const testing::Trial& trial) {
      return trial.micro_batch() < least ? testing::Answer::failed("more than 1 value") : answer(surface, trial);
    };
  };
  auto run = bench(study, needs(2));
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_EQ(run.asked().size(), 4u) << "the one that failed is replaced";
  EXPECT_EQ(run.asked()[0].micro_batch(), 1);
  EXPECT_TRUE(is_model_information(run.asked()[1]));
  for (size_t i = 1; i < 4; ++i) EXPECT_GE(run.asked()[i].micro_batch(), 4);
  EXPECT_TRUE(run.profile().is_object()) << run.finish_reason();

  auto broken = bench(study, needs(1000));
  ASSERT_TRUE(broken.run()) << broken.error();
  EXPECT_EQ(broken.asked().size(), 3u) << "the smallest, the user's own, another stage";
  EXPECT_THAT(broken.finish_reason(), HasSubstr("more than 1 value"));
}

TEST(Profiler, AMeasuredTrialThatFailsIsThatTrialsFailure) {
  const Surface surface;
  for (const int64_t largest_that_runs : {0, 1}) {
    auto run = bench(profile_study(surface), [&](const testing::Trial& trial) {
      if (is_model_information(trial)) return answer(surface, trial);
      return trial.micro_batch() > largest_that_runs ? testing::Answer::failed("IndexError: x")
                                                     : answer(surface, trial);
    });
    ASSERT_TRUE(run.run()) << run.error();
    EXPECT_TRUE(run.profile().is_object()) << "the trials that ran make the profile";
    EXPECT_LE(run.asked().size(), 5u);
  }
}

TEST(Profiler, AMicroBatchThatTheScriptDoesNotTakeCostsOneTrial) {
  const Surface surface;
  auto run = bench(profile_study(surface), [&](const testing::Trial& trial) {
    const bool takes = is_model_information(trial) || trial.micro_batch() <= 3;
    return takes ? answer(surface, trial) : testing::Answer::failed("ValueError: too few samples");
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.profile().is_object()) << run.finish_reason();
  int64_t least_failed = 1000;
  for (const testing::Ended& ended : run.ended()) {
    if (ended.answer.outcome != Outcome::failed) continue;
    EXPECT_LT(ended.trial.micro_batch(), least_failed);
    least_failed = ended.trial.micro_batch();
  }
  EXPECT_LT(least_failed, 1000);
}

TEST(Profiler, AModelInformationTrialWithoutParametersIsAnError) {
  const Surface surface;
  auto run = bench(profile_study(surface), [&](const testing::Trial&) {
    return testing::Answer::completed({{"throughput", 3}});
  });
  EXPECT_FALSE(run.run());
  EXPECT_THAT(run.error(), HasSubstr("num_params"));
}

// Passed on, they would be blamed on the plugin that hands the profile over.
TEST(Profiler, SizesThatNoModelHasNameWhatIsToBeMended) {
  const std::vector<std::pair<std::map<std::string, double>, std::string>> cases = {
      {{{"num_params", 0.5}}, "num_params is 0.5"},
      {{{"num_params", 100}, {"trainable_num_params", 101}}, "trainable_num_params is 101"},
  };
  for (const auto& [metrics, words] : cases) {
    const Surface surface;
    auto run = bench(profile_study(surface),
                     [&, reported = metrics](const testing::Trial&) { return testing::Answer::completed(reported); });
    EXPECT_FALSE(run.run());
    EXPECT_THAT(run.error(), HasSubstr(words));
  }
}

TEST(Profiler, MeasuredTrialsKeepToTheStudysStages) {
  const Surface surface;
  Study study = profile_study(surface, {2, 3});
  study.base_config["zero_optimization"]["stage"] = 0;
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.asked()[0].stage(), 0);
  EXPECT_EQ(run.asked()[1].stage(), 2);
}

TEST(Profiler, ActivationsArePerSampleWhateverTheSmallestMicroBatch) {
  const Surface surface;
  const auto per_sample = [&](int64_t smallest) {
    Study study = profile_study(surface);
    study.space["min_micro_batch"] = smallest;
    study.limits.profile_trials = 1;
    auto run = bench(study, [&](const testing::Trial& trial) {
      testing::Answer reported = answer(surface, trial);
      reported.metrics["activation_mem_per_gpu"] *= static_cast<double>(trial.micro_batch());
      return reported;
    });
    EXPECT_TRUE(run.run()) << run.error();
    EXPECT_EQ(run.asked()[0].micro_batch(), smallest);
    return run.profile()["activation_bytes_per_sample"]["value"].get<double>();
  };
  EXPECT_DOUBLE_EQ(per_sample(8), per_sample(1));
}

// dsat-trial's: stage 3 keeps small parameters whole, and gathers by layers.
TEST(Profiler, WhatATrialReportsOfItsLayersReachesTheProfile) {
  const Surface surface;
  auto run = bench(profile_study(surface), [&](const testing::Trial& trial) {
    testing::Answer reported = answer(surface, trial);
    reported.metrics["largest_layer_params"] = 5000;
    reported.metrics["params_up_to_1e4"] = 700;
    return reported;
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.profile()["largest_layer_params"], 5000);
  EXPECT_EQ(run.profile()["params_up_to_1e4"], 700);
  EXPECT_FALSE(run.profile().contains("params_up_to_1e5"));
}

TEST(Profiler, TheWorldSizeThatATrialReportsDividesTheModelStates) {
  const Surface surface;  // runs on 4 ranks
  const auto stages = [&](int64_t planned) {
    Study study = profile_study(surface);
    study.limits.slots = study.limits.slots_per_trial = study.limits.data_parallel_size = planned;
    auto run = bench(surface, study);
    EXPECT_TRUE(run.run()) << run.error();
    EXPECT_EQ(run.profile()["world_size"], surface.world_size);
    return run.profile()["stages"];
  };
  const Json planned_for_1 = stages(1), planned_for_4 = stages(4);
  for (size_t i = 0; i < planned_for_4.size(); ++i) {
    EXPECT_EQ(planned_for_1[i]["model_state_bytes"], planned_for_4[i]["model_state_bytes"]) << planned_for_4[i];
  }
}

TEST(Profiler, UnknownDeviceMemoryIsNull) {
  Surface surface;
  auto run = bench(profile_study(surface), [&](const testing::Trial& trial) {
    testing::Answer reported = answer(surface, trial);
    reported.metrics.erase("device_memory");
    reported.metrics.erase("world_size");
    return reported;
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.profile()["device_memory_bytes"].is_null());
  EXPECT_EQ(run.profile()["world_size"], surface.world_size);
}

TEST(Profiler, DeviceMemoryIsLearntFromAMeasuredTrialToo) {
  const Surface surface;
  auto run = bench(profile_study(surface), [&](const testing::Trial& trial) {
    testing::Answer reported = answer(surface, trial);
    reported.metrics.erase("device_memory");
    if (!is_model_information(trial)) reported.metrics["device_memory"] = surface.device_memory;
    return reported;
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.profile()["device_memory_bytes"], surface.device_memory);
  EXPECT_GT(run.asked()[2].micro_batch(), 4);  // halfway to a ceiling, not the next step in the dark
}

TEST(Profiler, AThirdMeasuredTrialLiesCloseBelowTheCeiling) {
  const Surface surface;
  Study study = profile_study(surface, {1});
  study.limits.profile_trials = 4;
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_EQ(run.asked().size(), 4u);
  Json config = run.asked()[3].config;
  EXPECT_TRUE(surface.fits(config));
  config["train_micro_batch_size_per_gpu"] = 2 * run.asked()[3].micro_batch();
  EXPECT_FALSE(surface.fits(config));
}

TEST(Profiler, TheForwardsOwnPeakTellsTheFixedBytes) {
  Surface surface;
  surface.fixed_bytes = 4e9;
  enum class Peak { unknown, reported, probed };
  const auto error_with = [&](Peak known) {
    Study study = profile_study(surface);
    study.limits.profile_trials = 1;
    auto run = bench(study, [&](const testing::Trial& trial) {
      testing::Answer reported = answer(surface, trial);
      // One forward: no gradients, no bucket and none of Adam's states yet.
      const cost::ModelSize size{surface.num_params, surface.num_params, 0};
      const double held = cost::forward_bytes(size, surface.setup(trial.config));
      const double peak = held + surface.fixed_bytes + 0.8 * surface.activation_bytes;
      if (known == Peak::reported) reported.metrics["peak_memory"] = peak;
      const bool is_forward = reported.metrics.count("num_params") > 0;
      if (known == Peak::probed && is_forward) reported.peak_bytes = static_cast<uint64_t>(peak);
      return reported;
    });
    EXPECT_TRUE(run.run()) << run.error();
    return std::abs(run.profile()["fixed_bytes"]["value"].get<double>() - surface.fixed_bytes);
  };
  EXPECT_LT(error_with(Peak::reported), 0.1 * error_with(Peak::unknown));
  EXPECT_LT(error_with(Peak::probed), 0.1 * error_with(Peak::unknown));
}

TEST(Profiler, OnlyTheUsersDeviceMemoryCountsWhenItIsGiven) {
  const Surface surface;
  Study study = profile_study(surface);
  study.device_memory_bytes = 12000000000;
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.profile()["device_memory_bytes"], 12000000000);
}

TEST(Profiler, ZeroActivationMemoryGivesAProfile) {
  Surface surface;
  surface.activation_bytes = 0;
  auto run = bench(surface, profile_study(surface));
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.profile().is_object());
}

TEST(Profiler, OneLegalMicroBatchIsMeasuredOnce) {
  const Surface surface;
  Study study = profile_study(surface);
  config::Space space = small_space({1});
  space.min_micro_batch = space.max_micro_batch.emplace(4);
  study.space = config::to_json(space);
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.asked().size(), 2u);
  for (const testing::Trial& trial : run.asked()) EXPECT_EQ(trial.micro_batch(), 4);
}

// The first measured trial, and in another profile the second.
TEST(Profiler, AMeasuredTrialThatRunsOutOfMemoryIsASmallerOneNext) {
  const Surface surface;
  for (const int fails : {1, 2}) {
    int measured = 0;
    auto run = bench(profile_study(surface, {1}), [&](const testing::Trial& trial) {
      if (is_model_information(trial)) return answer(surface, trial);
      return ++measured == fails ? testing::Answer::out_of_memory() : answer(surface, trial);
    });
    ASSERT_TRUE(run.run()) << run.error();
    const size_t next = static_cast<size_t>(fails) + 1;
    ASSERT_EQ(run.asked().size(),
              next + 1);  // the second is replaced; of the first a half is the smallest that there is
    EXPECT_LT(run.asked()[next].micro_batch(), run.asked()[next - 1].micro_batch());
    EXPECT_TRUE(run.profile().is_object());
  }
}

TEST(Profiler, AfterAMeasuredTrialRanOutOfMemoryItGoesOnAtTheHighestStage) {
  const Surface surface;
  auto run = bench(profile_study(surface, {1, 3}), [&](const testing::Trial& trial) {
    return is_model_information(trial) || trial.stage() == 3 ? answer(surface, trial)
                                                             : testing::Answer::out_of_memory();
  });
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_GE(run.asked().size(), 3u);
  EXPECT_EQ(run.asked()[1].stage(), 1);
  for (size_t i = 2; i < run.asked().size(); ++i) EXPECT_EQ(run.asked()[i].stage(), 3) << "trial " << i;
}

TEST(Profiler, SpendsAtMostAsManyAgainWhereTrialsRunOutOfMemory) {
  const Surface surface;
  auto run = bench(profile_study(surface, {1}), [&](const testing::Trial& trial) {
    return is_model_information(trial) ? answer(surface, trial) : testing::Answer::out_of_memory();
  });
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_LE(run.asked().size(), 6u);
  EXPECT_TRUE(run.profile().is_object());
}

}  // namespace
}  // namespace dsat::tests
