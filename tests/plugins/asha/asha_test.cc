// The ladder of asha: who is promoted, when, and how many trials that grants.
// Studies on the simple surface of surface.h, most with an unknown device.
#include "asha/asha.h"

#include <gtest/gtest.h>

#include <map>

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
  EXPECT_GT(trials_of(few).size(), trials_of(many).size());
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
