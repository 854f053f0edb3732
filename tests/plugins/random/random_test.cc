// The rules of random: trials per configuration, early stopping, where draws lie.
// Studies on the simple surface of surface.h.
#include "random/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "plugins/surface.h"

namespace dsat::tests {
namespace {

testing::Bench bench(const Surface& surface, const Study& study, const Json& options = Json::object()) {
  return testing::Bench(
      testing::factory<RandomSearch>(), "random", study,
      [surface](const testing::Trial& trial) { return surface.answer(trial); }, options);
}

TEST(RandomSearch, AConfigurationGetsNoMoreThanItsTrials) {
  const Surface surface;
  for (const int trials : {1, 2, 5}) {
    auto run = bench(surface, make_study(surface, small_space({1, 2, 3})), {{"trials-per-random-config", trials}});
    ASSERT_TRUE(run.run()) << run.error();
    std::map<std::string, int> count;
    for (const testing::Trial& trial : run.asked()) ++count[trial.config["zero_optimization"].dump()];
    for (const auto& [configuration, asked] : count) EXPECT_LE(asked, trials) << configuration;
  }
}

TEST(RandomSearch, StopsEarlyWithoutANewBest) {
  const Surface surface;
  auto run = bench(surface, make_study(surface, small_space({1, 2, 3})), {{"early-stopping", 4}});
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_THAT(run.finish_reason(), ::testing::HasSubstr("no better configuration"));
  double best = 0;
  size_t since = 0;
  for (const testing::Ended& ended : run.ended()) {
    const auto it = ended.answer.metrics.find("throughput");
    ++since;
    if (it != ended.answer.metrics.end() && it->second > best) {
      best = it->second;
      since = 0;
    }
  }
  EXPECT_EQ(since, 4u);
}

TEST(RandomSearch, ANewConfigurationStartsAboveTheBestOfItsStage) {
  const Surface surface;
  Study study = make_study(surface, small_space({1}));
  auto run = bench(surface, study, {{"trials-per-random-config", 1}});
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_GE(run.asked().size(), 2u);
  EXPECT_GT(run.asked()[1].micro_batch(), run.asked()[0].micro_batch());
}

TEST(RandomSearch, AConfigurationEndsWhereAnotherOfItsStageRanLarger) {
  const Surface surface;
  auto run = bench(surface, make_study(surface, small_space({1})), {{"trials-per-random-config", 5}});
  ASSERT_TRUE(run.run()) << run.error();
  std::map<std::string, int64_t> largest;  // that each configuration has completed; 0: none yet
  int outrun = 0;                          // configurations whose turn was over
  for (const testing::Ended& ended : run.ended()) {
    const std::string name = ended.trial.config["zero_optimization"].dump();
    int64_t of_others = 0;
    for (const auto& [other, micro_batch] : largest) of_others = std::max(of_others, other == name ? 0 : micro_batch);
    if (largest.count(name) > 0) {
      EXPECT_GE(largest[name], of_others) << "trial " << ended.trial.id;
    }
    const bool completed = ended.answer.outcome == Outcome::completed;
    largest[name] = std::max(largest[name], completed ? ended.trial.micro_batch() : 0);
    if (largest[name] < of_others) ++outrun;
  }
  EXPECT_GT(outrun, 0);
}

// Without axes the micro batches are all that is drawn.
TEST(RandomSearch, EachSeedDrawsOtherMicroBatches) {
  const Surface surface;
  config::Space space;
  space.stages.push_back({1, {}});
  std::set<std::vector<int64_t>> drawn;
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    Study study = make_study(surface, space);
    study.seed = seed;
    auto run = bench(surface, study);
    ASSERT_TRUE(run.run()) << run.error();
    std::vector<int64_t> micro_batches;
    for (const testing::Trial& trial : run.asked()) micro_batches.push_back(trial.micro_batch());
    drawn.insert(micro_batches);
  }
  EXPECT_GT(drawn.size(), 1u);
}

// Stage 3 is the only one that fits well here: a rule that drops it once stage 1 has run would miss the best.
TEST(RandomSearch, StageThreeIsSearchedAfterStageOneHasRun) {
  Surface surface;
  surface.num_params = 7e8;
  surface.world_size = 16;
  surface.device_memory = 8e9;
  surface.stage_speed = {{1, 1.0}, {2, 1.0}, {3, 0.95}};
  const Study study = make_study(surface, small_space({1, 2, 3}));
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  double best = 0;
  std::set<int> completed;
  for (const testing::Ended& ended : run.ended()) {
    if (ended.answer.outcome != Outcome::completed) continue;
    completed.insert(ended.trial.stage());
    best = std::max(best, ended.answer.metrics.at("throughput"));
  }
  EXPECT_TRUE(completed.count(3));
  EXPECT_GE(best, 0.95 * surface.best_throughput(study));
}

}  // namespace
}  // namespace dsat::tests
