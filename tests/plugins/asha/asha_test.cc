// The ladder of asha: who is promoted, when, and how many trials that grants.
// Studies on the simple surface of surface.h, most with an unknown device.
#include "asha/asha.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "plugins/surface.h"

namespace dsat::tests {
namespace {

testing::Bench bench(const Surface& surface, const Study& study, const Json& options = Json::object()) {
  return testing::Bench(
      testing::factory<Asha>(), "asha", study, [surface](const testing::Trial& trial) { return surface.answer(trial); },
      options);
}

// Trials of each configuration, in the order in which they were asked for.
std::map<std::string, int> trials_of(const testing::Bench& bench) {
  std::map<std::string, int> count;
  for (const testing::Trial& trial : bench.asked()) ++count[trial.config["zero_optimization"].dump()];
  return count;
}

config::Space wide_space() {
  config::Space space = small_space({1});
  for (int i = 0; i < 100; ++i) space.stages[0].axes[0].values.push_back(1000000 + i);
  return space;
}

// With nothing known of the memory a search doubles from the smallest micro batch on and takes a dozen trials.
Surface silent_surface() {
  Surface surface;
  surface.tells_peak = false;
  return surface;
}
Study long_searches(const Surface& surface, const config::Space& space, int64_t max_trials) {
  Study study = make_study(surface, space);
  study.device_memory_bytes.reset();
  study.profile["device_memory_bytes"] = nullptr;
  study.limits.max_trials = max_trials;
  return study;
}

TEST(Asha, TheFirstConfigurationsGetTheLowestRungsTrials) {
  const Surface surface = silent_surface();
  const Study study = long_searches(surface, wide_space(), 6);
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_EQ(run.asked().size(), 6u);
  EXPECT_EQ(run.asked()[0].config["zero_optimization"], run.asked()[2].config["zero_optimization"]);
  EXPECT_NE(run.asked()[2].config["zero_optimization"], run.asked()[3].config["zero_optimization"]);
}

TEST(Asha, TheBetterOfTwoIsPromoted) {
  const Surface surface = silent_surface();
  const Study study = long_searches(surface, wide_space(), 9);
  auto run = bench(surface, study);
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_EQ(run.asked().size(), 9u);
  double best[2] = {0, 0};
  for (size_t i = 0; i < 6; ++i) {
    best[i / 3] = std::max(best[i / 3], run.ended()[i].answer.metrics.at("throughput"));
  }
  const size_t winner = best[0] >= best[1] ? 0 : 3;
  EXPECT_EQ(run.asked()[6].config["zero_optimization"], run.asked()[winner].config["zero_optimization"]);
}

TEST(Asha, NoConfigurationGetsMoreThanTheTopRungAllows) {
  const Surface surface = silent_surface();
  const Study study = long_searches(surface, wide_space(), 60);
  auto run = bench(surface, study, {{"max-rungs", 2}, {"min-binary-search-trials", 2}});
  ASSERT_TRUE(run.run()) << run.error();
  for (const auto& [configuration, count] : trials_of(run)) EXPECT_LE(count, 4) << configuration;
}

TEST(Asha, EarlyStoppingDoublesTheTrialsOfARung) {
  const Surface surface = silent_surface();
  const Study study = long_searches(surface, wide_space(), 6);
  auto run = bench(surface, study, {{"asha-early-stopping", 1}});
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(trials_of(run).size(), 1u);
}

TEST(Asha, ALargerDivisorPromotesFewer) {
  Surface surface = silent_surface();
  surface.activation_bytes = 1e5;  // ceilings far away
  const Study study = long_searches(surface, wide_space(), 60);
  auto few = bench(surface, study, {{"divisor", 8}});
  auto many = bench(surface, study, {{"divisor", 2}});
  ASSERT_TRUE(few.run() && many.run());
  const auto promoted = [](const testing::Bench& run) {
    const auto trials = trials_of(run);
    return std::count_if(trials.begin(), trials.end(), [](const auto& of) { return of.second > 3; });
  };
  EXPECT_LT(promoted(few), promoted(many));

  std::map<std::string, int> trials;
  size_t beyond_the_first_rung = 0;
  for (const testing::Trial& trial : few.asked()) {
    if (++trials[trial.config["zero_optimization"].dump()] == 4) ++beyond_the_first_rung;
    EXPECT_LE(8 * beyond_the_first_rung, trials.size()) << "when trial " << trial.id << " was asked for";
  }
}

TEST(Asha, TheDivisorIsAlsoTheGrowthOfTheTrialsOfARung) {
  Surface surface = silent_surface();
  surface.activation_bytes = 1e4;  // ceilings far away
  const Study study = long_searches(surface, wide_space(), 100);
  auto run = bench(surface, study, {{"divisor", 3}, {"min-binary-search-trials", 2}, {"max-rungs", 2}});
  ASSERT_TRUE(run.run()) << run.error();
  int most = 0;
  for (const auto& [configuration, count] : trials_of(run)) most = std::max(most, count);
  EXPECT_EQ(most, 6);
}

TEST(Asha, NothingIsPromotedWithoutAMetric) {
  const Surface surface;
  Study study = make_study(surface, wide_space());
  study.limits.max_trials = 30;
  auto run = testing::Bench(
      testing::factory<Asha>(), "asha", study,
      [surface](const testing::Trial& trial) {
        return trial.id < 6 ? testing::Answer::out_of_memory() : surface.answer(trial);
      },
      Json::object());
  ASSERT_TRUE(run.run()) << run.error();
  std::map<std::string, int> trials, measured;
  for (const testing::Ended& ended : run.ended()) {
    const std::string configuration = ended.trial.config["zero_optimization"].dump();
    EXPECT_TRUE(trials[configuration] < 3 || measured[configuration] > 0) << configuration;
    ++trials[configuration];
    measured[configuration] += ended.answer.outcome == Outcome::completed ? 1 : 0;
  }
}

// The first configuration is promoted and finds a far better metric there. The third beats what the first had within
// the trials of the lowest rung, so it is the best third of that rung and follows at once.
TEST(Asha, AMetricFromFurtherUpDoesNotCountInALowerRung) {
  const Surface surface = silent_surface();
  const Study study = long_searches(surface, wide_space(), 15);
  std::vector<std::string> order;  // of the configurations
  std::map<std::string, int> count;
  auto run = testing::Bench(
      testing::factory<Asha>(), "asha", study,
      [&](const testing::Trial& trial) {
        const std::string configuration = trial.config["zero_optimization"].dump();
        if (count[configuration]++ == 0) order.push_back(configuration);
        const double base[] = {5, 4, 10, 9};
        const bool leaps = order[0] == configuration && count[configuration] > 3;
        const double metric = leaps ? 1000 : configuration == order.back() ? base[order.size() - 1] : 0;
        return testing::Answer::completed({{"throughput", metric + 0.01 * count[configuration]}}, std::nullopt);
      },
      {{"max-rungs", 2}});
  ASSERT_TRUE(run.run()) << run.error();
  ASSERT_EQ(run.asked().size(), 15u);
  ASSERT_GE(order.size(), 3u);
  EXPECT_EQ(run.asked()[6].config["zero_optimization"].dump(), order[0]);
  EXPECT_EQ(run.asked()[12].config["zero_optimization"].dump(), order[2]);
}

TEST(Asha, WithNothingNewToDrawTheWaitingSearchesGoOn) {
  const Surface surface = silent_surface();
  config::Space space = small_space({1});
  space.stages[0].axes.clear();
  const Study study = long_searches(surface, space, 8);
  auto run = bench(surface, study, {{"max-rungs", 1}});
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_EQ(run.asked().size(), 8u);
}

TEST(Asha, HugeOptionsDoNotOverflow) {
  const Surface surface;
  Study study = make_study(surface, wide_space());
  auto run =
      bench(surface, study, {{"max-rungs", 30}, {"min-binary-search-trials", INT64_MAX}, {"asha-early-stopping", 30}});
  ASSERT_TRUE(run.run()) << run.error();
  EXPECT_TRUE(run.finished());
}

TEST(Asha, TheSearchRangeFactorNarrowsTheSearch) {
  const Surface surface;
  Study study = make_study(surface, wide_space());
  study.limits.max_trials = 1;
  auto whole = bench(surface, study);
  auto half = bench(surface, study, {{"search-range-factor", 0.5}});
  ASSERT_TRUE(whole.run() && half.run());
  EXPECT_LT(half.asked()[0].micro_batch(), whole.asked()[0].micro_batch());
}

}  // namespace
}  // namespace dsat::tests
