// The rules of grid: its order, its micro batches, when it leaves a stage.
// The order is tested alone, the rest by studies on the simple surface of surface.h.
#include "grid/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "plugins/surface.h"

namespace dsat::tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

testing::Bench bench(const Surface& surface, const Study& study, const Json& options = Json::object()) {
  return testing::Bench(
      testing::factory<Grid>(), "grid", study, [surface](const testing::Trial& trial) { return surface.answer(trial); },
      options);
}

// The choice of values of a trial: all but its micro batch.
std::string values_of(const testing::Trial& trial) { return trial.config["zero_optimization"].dump(); }

std::vector<int64_t> micro_batches_of_first_choice(const testing::Bench& run, int stage) {
  std::vector<int64_t> found;
  std::string first;
  for (const testing::Trial& trial : run.asked()) {
    if (trial.stage() != stage) continue;
    if (first.empty()) first = values_of(trial);
    if (values_of(trial) == first) found.push_back(trial.micro_batch());
  }
  return found;
}

TEST(GridOrder, GoesFromTheUsersValuesOutwards) {
  const config::StageSpace stage{1, {{"a", {10, 20, 30}}, {"b", {true, false}}}};
  const Json user{{"a", 20}, {"b", true}};
  search::GridOrder order(stage, search::usual_choice(stage, user));
  std::vector<std::vector<size_t>> all;
  for (size_t i = 0; order.at(i) != nullptr; ++i) all.push_back(*order.at(i));
  using C = std::vector<size_t>;
  EXPECT_THAT(all, ElementsAre(C{1, 0}, C{0, 0}, C{2, 0}, C{1, 1}, C{0, 1}, C{2, 1}));
}

TEST(GridOrder, WhereTheUserSaysNothingDeepSpeedsDefaultIsTheUsersValue) {
  const config::StageSpace stage{2,
                                 {{"zero_optimization.reduce_bucket_size", {5000000, 500000000}},
                                  {"zero_optimization.overlap_comm", {true, false}},
                                  {"zero_optimization.reduce_scatter", {false, true}},
                                  {"unheard.of", {7, 8}}}};
  EXPECT_THAT(search::usual_choice(stage, Json::object()), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(search::usual_choice(stage, {{"zero_optimization", {{"reduce_bucket_size", 5000000}}}}),
              ElementsAre(0, 1, 1, 0));
}

TEST(GridOrder, AStageWithoutAxesHasOneChoice) {
  const config::StageSpace stage{0, {}};
  search::GridOrder order(stage, {});
  EXPECT_NE(order.at(0), nullptr);
  EXPECT_EQ(order.at(1), nullptr);
}

TEST(Grid, TheUsersValuesAreTriedAtPowersOfTwoUpToTheCeiling) {
  const Surface surface;
  for (const int sizes : {1, 3, 4}) {
    auto run = bench(surface, make_study(surface, small_space({1})), {{"num-tuning-micro-batch-sizes", sizes}});
    ASSERT_TRUE(run.run()) << run.error();
    const std::vector<int64_t> found = micro_batches_of_first_choice(run, 1);
    ASSERT_GE(found.size(), static_cast<size_t>(sizes));
    for (int i = 0; i + 1 < sizes; ++i) {
      EXPECT_EQ(found[i] & (found[i] - 1), 0) << found[i];
      EXPECT_LT(found[i], found[i + 1]);
    }
    // What other choices show of the memory takes the best one to its ceiling.
    Json config = run.asked()[0].config;
    config["train_micro_batch_size_per_gpu"] = found.back();
    EXPECT_TRUE(surface.fits(config));
    config["train_micro_batch_size_per_gpu"] = found.back() * 5 / 4;
    EXPECT_FALSE(surface.fits(config));
  }
}

TEST(Grid, StagesTakeTurns) {
  const Surface surface;
  auto run = bench(surface, make_study(surface, small_space({1, 2, 3})), {{"num-tuning-micro-batch-sizes", 1}});
  ASSERT_TRUE(run.run()) << run.error();
  std::vector<int> stages;
  std::set<std::string> seen;  // one that ran out of memory is asked for again
  for (const testing::Trial& trial : run.asked()) {
    if (stages.size() < 6 && seen.insert(values_of(trial)).second) stages.push_back(trial.stage());
  }
  EXPECT_THAT(stages, ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST(Grid, TheWholeOfASmallGridIsVisitedAndFindsItsBest) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2, 3}));  // 3 + 6 + 6 choices
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  std::set<std::string> choices;
  for (const testing::Trial& trial : run.asked()) choices.insert(values_of(trial));
  EXPECT_EQ(choices.size(), 15u);
  EXPECT_THAT(run.finish_reason(), HasSubstr("left to try"));
  double best = 0;
  for (const testing::Ended& ended : run.ended()) {
    if (ended.trial.id == run.best()) best = ended.answer.metrics.at("throughput");
  }
  EXPECT_GE(best, 0.97 * surface.best_throughput(study));
}

TEST(Grid, TheSeedChangesNothing) {
  const Surface surface;
  Study study = make_study(surface, small_space({1, 2, 3}));
  auto once = bench(surface, study);
  study.seed = 7;
  auto again = bench(surface, study);
  ASSERT_TRUE(once.run());
  ASSERT_TRUE(again.run());
  EXPECT_EQ(once.ops(), again.ops());
}

TEST(Grid, LeavesAStageThatGetsNoBetter) {
  const Surface surface;
  const Study study = make_study(surface, small_space({1, 2, 3}));
  auto all = bench(surface, study), early = bench(surface, study, {{"early-stopping", 2}});
  ASSERT_TRUE(all.run());
  ASSERT_TRUE(early.run());
  EXPECT_LT(early.asked().size(), all.asked().size());
  EXPECT_THAT(early.finish_reason(), AllOf(HasSubstr("early stopping: 2"), HasSubstr("stages 1, 2, 3")));
}

// On a device whose memory nobody knows, a script that holds 96 samples and is the faster the more it gets.
TEST(Grid, WithoutAKnownDeviceACeilingIsFoundByHalves) {
  Surface surface;
  Study study = make_study(surface, small_space({1, 2, 3}));  // 15 choices
  study.device_memory_bytes.reset();
  study.profile.erase("device_memory_bytes");
  Json profiled = study.base_config;
  profiled["train_micro_batch_size_per_gpu"] = 64;
  study.observations.push_back({{"trial", 0},
                                {"config", profiled},
                                {"outcome", "completed"},
                                {"metrics", {{"throughput", surface.throughput(profiled)}}},
                                {"peak_bytes", nullptr}});
  surface.device_memory = 1e15;
  testing::Bench run(testing::factory<Grid>(), "grid", study, [&](const testing::Trial& trial) {
    return trial.micro_batch() > 96 ? testing::Answer::out_of_memory() : surface.answer(trial);
  });
  ASSERT_TRUE(run.run()) << run.error();
  std::map<std::string, int64_t> ran;
  std::map<int, int> lost;
  for (const testing::Ended& ended : run.ended()) {
    if (ended.answer.outcome == Outcome::out_of_memory) {
      ++lost[ended.trial.stage()];
      continue;
    }
    ran[values_of(ended.trial)] = std::max(ran[values_of(ended.trial)], ended.trial.micro_batch());
  }
  EXPECT_EQ(lost.size(), 3u);
  for (const auto& [stage, trials] : lost) EXPECT_LE(trials, 3) << "stage " << stage;
  EXPECT_EQ(ran.size(), 15u);
  for (const auto& [values, micro_batch] : ran) EXPECT_GE(micro_batch, 64) << values;
}

TEST(Grid, WhatRunsOutOfMemoryIsMeasuredOnceMoreBelow) {
  Surface surface;
  Study study = make_study(surface, small_space({1}));
  const double wrong = 0.6 * surface.activation_bytes;  // the model hopes for too much
  study.profile["activation_bytes_per_sample"] = {{"value", wrong}, {"low", 0.9 * wrong}, {"high", 1.1 * wrong}};
  auto run = bench(surface, study, {{"num-tuning-micro-batch-sizes", 1}});
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_GE(run.ended().size(), 2u);
  EXPECT_EQ(run.ended()[0].answer.outcome, Outcome::out_of_memory);
  EXPECT_EQ(values_of(run.ended()[1].trial), values_of(run.ended()[0].trial));
  EXPECT_LT(run.ended()[1].trial.micro_batch(), run.ended()[0].trial.micro_batch());
}

// 15,625 choices of a stage of which none fits: after a look at some of them the stage is left for good.
TEST(Grid, AStageThatDoesNotFitIsLeftForGood) {
  Surface surface;
  surface.device_memory = 15 * surface.num_params;  // below the states of stage 1 on one device
  surface.world_size = 1;
  config::Space space;
  config::StageSpace wide{1, {}};
  for (const char* key : {"a", "b", "c", "d", "e", "f"})
    wide.axes.push_back({std::string("own.") + key, {1, 2, 3, 4, 5}});
  space.stages.push_back(wide);
  Study study = make_study(surface, space);
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_THAT(run.save(), HasSubstr("\"drained\":[1]"));
  EXPECT_LE(run.ended().size(), 3u);
}

TEST(Grid, WhereLargeBatchesAreSlowOtherValuesAreMeasuredAtTheBestOne) {
  const Surface surface;
  testing::Bench run(testing::factory<Grid>(), "grid", make_study(surface, small_space({1})),
                     [surface](const testing::Trial& trial) {
                       testing::Answer answer = surface.answer(trial);
                       if (trial.micro_batch() > 32) answer.metrics["throughput"] = 1;
                       return answer;
                     });
  ASSERT_TRUE(run.run()) << run.error();
  const std::string first = values_of(run.asked()[0]);
  int others = 0;
  for (const testing::Trial& trial : run.asked()) {
    if (values_of(trial) == first) continue;
    EXPECT_EQ(trial.micro_batch(), 32);
    ++others;
  }
  EXPECT_EQ(others, 2);
}

}  // namespace
}  // namespace dsat::tests
