// What guided promises: few trials, few out of memory, and an answer whatever surface and study look like.
// Whole studies on the simple surface of surface.h.
#include "guided/guided.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plugins/clashing_sizes.h"
#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

testing::Bench bench_of(Study study, testing::AnswerFunction answer, const Json& options = Json::object()) {
  return testing::Bench(testing::factory<Guided>(), "guided", std::move(study), std::move(answer), options);
}

testing::Bench bench_of(const Surface& surface, Study study, const Json& options = Json::object()) {
  return bench_of(
      std::move(study), [surface](const testing::Trial& trial) { return surface.answer(trial); }, options);
}

Study study_of(const Surface& surface, int64_t trials) {
  Study study = make_study(surface, small_space({0, 1, 2, 3}));
  study.limits.max_trials = trials;
  return study;
}

double regret(const testing::Bench& bench, const Surface& surface, const Study& study) {
  return 1 - metric_of(bench, bench.best(), "throughput") / surface.best_throughput(study);
}

TEST(Guided, ComesNearTheOptimumInADozenTrials) {
  const Surface surface;
  const Study study = study_of(surface, 12);
  testing::Bench bench = bench_of(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_LT(regret(bench, surface, study), 0.01);
  EXPECT_LE(count_outcome(bench, Outcome::out_of_memory), 1);
}

TEST(Guided, FindsTheFastStageThatTheStepTimeModelDoesNotExpect) {
  Surface surface;
  surface.stage_speed = {{0, 0.6}, {1, 0.5}, {2, 0.7}, {3, 1.0}};
  const auto looks = [](const testing::Trial& trial) {
    return trial.note.find("nothing was measured in this stage") != std::string::npos;
  };
  // In some studies the trials that gain most come to that stage by themselves.
  int looked = 0;
  for (const uint64_t seed : {42, 41, 43, 44, 45}) {
    Study study = study_of(surface, 20);
    study.seed = seed;
    testing::Bench bench = bench_of(surface, study);
    ASSERT_TRUE(bench.run()) << bench.error();
    EXPECT_LT(regret(bench, surface, study), 0.01) << "seed " << seed;
    looked += std::any_of(bench.asked().begin(), bench.asked().end(), looks) ? 1 : 0;
  }
  EXPECT_GE(looked, 3);
}

TEST(Guided, FindsAnOptimumBelowTheCeiling) {
  const Surface surface;
  const auto throughput = [](const Json& config) {
    const double m = config.at("train_micro_batch_size_per_gpu").get<double>();
    return 1000 * m / (m + 4) * (m > 20 ? std::exp(-0.05 * (m - 20)) : 1);
  };
  testing::Bench bench = bench_of(study_of(surface, 24), [&](const testing::Trial& trial) {
    testing::Answer answer = surface.answer(trial);
    if (answer.outcome == Outcome::completed) answer.metrics = {{"throughput", throughput(trial.config)}};
    return answer;
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_GT(metric_of(bench, bench.best(), "throughput"), 0.97 * 1000 * 20 / 24);
}

// The host refuses what lies above the bound. One stage of the pipeline is by far the fastest, at its largest micro
// batch.
TEST(Guided, AsksForNoTrainBatchAboveItsBoundAndGivesUpNoPipelineForIt) {
  const Surface surface;
  Study study = study_of_bounded_train_batch(surface, 16);
  study.limits.max_trials = 20;
  int refused = 0;
  testing::Bench bench = bench_of(study, [&](const testing::Trial& trial) -> testing::Answer {
    const int64_t stages = config::find(trial.config, config::kPipelineStagesKey)->get<int64_t>();
    if (trial.micro_batch() * 4 / stages > 16) {
      ++refused;
      return {Outcome::invalid_config, {}, std::nullopt, "over the bound"};
    }
    testing::Answer answer = surface.answer(trial);
    const double rate = static_cast<double>(trial.micro_batch()) / static_cast<double>(stages);
    if (answer.outcome == Outcome::completed) answer.metrics = {{"throughput", 100 * rate}};
    return answer;
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(metric_of(bench, bench.best(), "throughput"), 400);
}

// A wave holds 31 samples: 32 take as long as 62. Sizes near the ceiling fill most of their second wave.
TEST(Guided, FindsTheEndOfAWaveBelowTheCeiling) {
  const Surface surface;
  const auto throughput = [](double m) { return m / (0.02 + 0.2 * std::ceil(m / 31)); };
  testing::Bench bench = bench_of(study_of(surface, 12), [&](const testing::Trial& trial) {
    testing::Answer answer = surface.answer(trial);
    const double m = trial.config.at("train_micro_batch_size_per_gpu").get<double>();
    if (answer.outcome == Outcome::completed) answer.metrics = {{"throughput", throughput(m)}};
    return answer;
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_GT(metric_of(bench, bench.best(), "throughput"), 0.99 * throughput(31));
}

// Nothing tells how much memory a device has.
Study unknown_device(const Surface& surface) {
  Study study = study_of(surface, 30);
  study.device_memory_bytes.reset();
  study.profile["device_memory_bytes"] = nullptr;
  return study;
}

TEST(Guided, WithoutDeviceMemoryGrowsUntilSomethingRunsOut) {
  Surface surface;
  surface.tells_peak = false;
  const Study study = unknown_device(surface);
  testing::Bench bench = bench_of(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_LT(regret(bench, surface, study), 0.05);
}

// Nothing bounds the micro batch here: no device's memory is known, and nothing ever fails. Steps only take longer.
TEST(Guided, WithoutAnyBoundGrowsOnlyAsLongAsThatIsFaster) {
  Surface surface;
  surface.device_memory = 1e18;
  surface.tells_peak = false;
  testing::Bench bench = bench_of(surface, unknown_device(surface));
  ASSERT_TRUE(bench.run()) << bench.error();
  int64_t largest = 0;
  for (const testing::Trial& trial : bench.asked()) largest = std::max(largest, trial.micro_batch());
  EXPECT_LT(largest, 4096);  // four times more is worth 1 % at 600
  EXPECT_GT(metric_of(bench, bench.best(), "throughput"), 0.97 * 1000);
}

TEST(Guided, WithAFixedGlobalBatchAsksForDivisorsOnly) {
  const Surface surface;
  Study study = study_of(surface, 15);
  study.space["micro_batch_divides"] = 96;
  study.metric = "latency";
  study.maximise = false;
  testing::Bench bench = bench_of(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  for (const testing::Trial& trial : bench.asked()) EXPECT_EQ(96 % trial.micro_batch(), 0) << trial.micro_batch();
  EXPECT_NE(bench.best(), kNoTrial);
}

TEST(Guided, MinimisesAPhaseAtItsSmallestMicroBatch) {
  const Surface surface;
  Study study = study_of(surface, 15);
  study.metric = "forward";
  study.maximise = false;
  testing::Bench bench = bench_of(study, [&](const testing::Trial& trial) {
    testing::Answer answer = surface.answer(trial);
    if (answer.outcome == Outcome::completed) {
      answer.metrics = {{"forward", 100.0 + 10.0 * static_cast<double>(trial.micro_batch())}};
    }
    return answer;
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(metric_of(bench, bench.best(), "forward"), 110);
}

TEST(Guided, MeasuresTheOnlyPointOfASpaceAndEnds) {
  const Surface surface;
  Study study = study_of(surface, 50);
  study.zero_stages = {1};
  config::Space space;
  space.stages.push_back({1, {}});
  space.max_micro_batch = 1;
  study.space = config::to_json(space);
  testing::Bench bench = bench_of(surface, study);
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_TRUE(bench.finished());
  EXPECT_EQ(bench.best(), bench.asked().front().id);
  EXPECT_EQ(bench.counted(), 1);
}

TEST(Guided, LearnsAnAxisThatTheStepTimeModelDoesNotKnow) {
  const Surface surface;
  config::Space space = small_space({1, 2});
  for (config::StageSpace& stage : space.stages) stage.axes.push_back({"my.kernel", {"plain", "slow", "fused"}});
  Study study = make_study(surface, space);
  study.limits.max_trials = 20;
  testing::Bench bench = bench_of(study, [&](const testing::Trial& trial) {
    testing::Answer answer = surface.answer(trial);
    const std::string kernel = trial.config.at("my").at("kernel").get<std::string>();
    for (auto& [name, value] : answer.metrics) {
      if (name == "throughput") value *= kernel == "fused" ? 1.2 : kernel == "slow" ? 0.7 : 1;
    }
    answer.metrics.erase("latency");
    return answer;
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(bench.asked()[bench.best()].config.at("my").at("kernel"), "fused");
}

TEST(Guided, GivesUpWhereEverythingFails) {
  const Surface surface;
  testing::Bench bench =
      bench_of(study_of(surface, 500), [](const testing::Trial&) { return testing::Answer::failed("no such file"); });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_TRUE(bench.finished());
  EXPECT_EQ(bench.best(), kNoTrial);
  EXPECT_NE(bench.finish_reason().find("no such file"), std::string::npos);
}

TEST(Guided, LeavesAValueWithWhichTrialsFail) {
  const Surface surface;
  config::Space space = small_space({1, 2});
  for (config::StageSpace& stage : space.stages) stage.axes.push_back({"my.kernel", {"plain", "broken"}});
  Study study = make_study(surface, space);
  study.limits.max_trials = 20;
  testing::Bench bench = bench_of(study, [&](const testing::Trial& trial) {
    if (trial.config.at("my").at("kernel") == "broken") return testing::Answer::failed("not installed");
    return surface.answer(trial);
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_LE(count_outcome(bench, Outcome::failed), 6);
  EXPECT_LT(regret(bench, surface, study), 0.02);
}

// Each of the two values goes with others; DeepSpeed takes no configuration with both.
TEST(Guided, LeavesTwoValuesThatClash) {
  const Surface surface;
  config::Space space = small_space({1, 2});
  for (config::StageSpace& stage : space.stages) {
    stage.axes.push_back({"my.first", {true, false}});
    stage.axes.push_back({"my.second", {true, false}});
  }
  Study study = make_study(surface, space);
  study.limits.max_trials = 40;
  testing::Bench bench = bench_of(study, [&](const testing::Trial& trial) -> testing::Answer {
    const Json& own = trial.config.at("my");
    if (own.at("first") == true && own.at("second") == true) {
      return {Outcome::invalid_config, {}, std::nullopt, "one of the two"};
    }
    return surface.answer(trial);
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_LE(count_outcome(bench, Outcome::invalid_config), 20);
  EXPECT_LT(regret(bench, surface, study), 0.02);
}

TEST(Guided, LeavesSizesThatClashOnlyTogether) {
  const Surface surface;
  int unreadable = 0;
  testing::Bench bench = bench_of(study_of_clashing_sizes(surface), refusing_clashes(surface, unreadable));
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_LE(unreadable, 1);
  EXPECT_GT(count_outcome(bench, Outcome::completed), 0);
}

// Later trials learn from those that have ended, and some are always left that can.
TEST(Guided, OpensNoMoreTrialsThanHaveEndedNorMoreThanHalfOfThoseLeft) {
  const Surface surface;
  Study study = study_of(surface, 32);
  study.limits.max_concurrent_trials = 16;
  study.limits.open_trials = 19;  // as the host gives it: some wait for the next free slot
  testing::Bench bench = bench_of(surface, study, {{"tolerance", 0.0}});
  bench.start();
  EXPECT_EQ(bench.open(), 1u);
  size_t most = 0;
  while (bench.step()) {
    const size_t ended = bench.ended().size();
    EXPECT_LE(bench.open(), std::max<size_t>(1, std::min(ended, (33 - ended) / 2))) << ended << " have ended";
    most = std::max(most, bench.open());
  }
  ASSERT_TRUE(bench.error().empty()) << bench.error();
  EXPECT_GE(most, 6u);
  EXPECT_EQ(count_duplicates(bench), 0);
  EXPECT_LT(regret(bench, surface, study), 0.02);
}

TEST(Guided, FillsItsSlotsAgainOnceTheLimitWasRaised) {
  const Surface surface;
  Study study = study_of(surface, 12);
  study.limits.max_concurrent_trials = 4;
  testing::Bench bench = bench_of(surface, study, {{"tolerance", 0.0}});
  bench.start();
  bench.raise_limit(32);
  size_t most = 0;
  while (bench.step()) {
    if (bench.asked().size() > 13) most = std::max(most, bench.open());
  }
  ASSERT_TRUE(bench.error().empty()) << bench.error();
  EXPECT_EQ(most, 4u);
}

// Slots by the hundred would take ten rounds to fill. With 81 slots rounds grow threefold, by the fourth root.
TEST(Guided, RoundsGrowFasterWhereSlotsAreMany) {
  const Surface surface;
  Study study = study_of(surface, 400);
  study.limits.max_concurrent_trials = 81;
  testing::Bench bench = bench_of(surface, study, {{"tolerance", 0.0}});
  bench.start();
  size_t ended = 0;
  double most_for_each = 0;  // trials at work for each that has ended
  while (bench.step() && ended < 41) {
    ended = bench.ended().size();
    EXPECT_LE(bench.open(), std::max<size_t>(1, 2 * ended)) << ended << " have ended";
    if (ended >= 8) most_for_each = std::max(most_for_each, static_cast<double>(bench.open()) / ended);
  }
  ASSERT_TRUE(bench.error().empty()) << bench.error();
  EXPECT_GT(most_for_each, 1.5);
}

TEST(Guided, DecidesTheSameForTheSameEvents) {
  const Surface surface;
  testing::Bench first = bench_of(surface, study_of(surface, 15));
  testing::Bench second = bench_of(surface, study_of(surface, 15));
  ASSERT_TRUE(first.run());
  ASSERT_TRUE(second.run());
  EXPECT_EQ(first.ops(), second.ops());
}

TEST(Guided, AsksOnceMoreForALostTrial) {
  const Surface surface;
  int lost = 0;
  testing::Bench bench = bench_of(study_of(surface, 10), [&](const testing::Trial& trial) {
    if (lost++ == 0) return testing::Answer{Outcome::lost, {}, std::nullopt, "node down"};
    return surface.answer(trial);
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(bench.asked()[1].overrides, bench.asked()[0].overrides);
  EXPECT_TRUE(bench.asked()[1].repeat);
}

TEST(Guided, AConfigurationThatIsAlwaysLostHasTwoTrials) {
  const Surface surface;
  std::optional<Json> loses_its_node;
  testing::Bench bench = bench_of(study_of(surface, 10), [&](const testing::Trial& trial) {
    if (!loses_its_node) loses_its_node = trial.config;
    if (trial.config == *loses_its_node) return testing::Answer{Outcome::lost, {}, std::nullopt, "node down"};
    return surface.answer(trial);
  });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(count_outcome(bench, Outcome::lost), 2);
  EXPECT_NE(bench.best(), kNoTrial);
}

TEST(Guided, SaysInALineWhyEachTrialIsTried) {
  const Surface surface;
  testing::Bench bench = bench_of(surface, study_of(surface, 10));
  ASSERT_TRUE(bench.run()) << bench.error();
  for (const testing::Trial& trial : bench.asked()) {
    EXPECT_NE(trial.note.find("micro batch " + std::to_string(trial.micro_batch())), std::string::npos) << trial.note;
    EXPECT_EQ(trial.note.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace dsat::tests
