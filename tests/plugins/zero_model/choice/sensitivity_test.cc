// What the study's log says at its end about the choices that mattered.
// The plugin writes the log, so the tests run whole studies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "guided/guided.h"
#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

testing::Bench run_guided(const Study& study, testing::AnswerFunction answer) {
  return testing::Bench(testing::factory<Guided>(), "guided", study, std::move(answer));
}

TEST(Sensitivity, IsLoggedAtTheEndWithTheLargestEffectFirst) {
  Surface surface;
  surface.stage_speed = {{1, 1.0}, {2, 0.6}};
  Study study = make_study(surface, small_space({1, 2}));
  study.limits.max_trials = 20;
  testing::Bench bench = run_guided(study, [surface](const testing::Trial& trial) { return surface.answer(trial); });
  ASSERT_TRUE(bench.run()) << bench.error();
  const std::string logs = joined(bench.logs());
  EXPECT_NE(logs.find("what mattered"), std::string::npos) << logs;
  const size_t stage = logs.find("ZeRO stage 2 instead of 1: -"), micro_batch = logs.find("micro batch ");
  const size_t bucket = logs.find("zero_optimization.reduce_bucket_size");
  EXPECT_NE(stage, std::string::npos) << logs;
  EXPECT_NE(micro_batch, std::string::npos) << logs;
  ASSERT_NE(bucket, std::string::npos) << logs;
  EXPECT_LT(stage, bucket) << "40 % matters more than 10 %\n" << logs;
}

TEST(Sensitivity, NamesNoValueThatNoTrialHad) {
  const Surface surface;
  config::Space space = small_space({1});
  const std::vector<int> buckets{1000000, 5000000, 10000000, 50000000, 100000000, 500000000, 1000000000};
  space.stages.front().axes.front().values = {buckets.begin(), buckets.end()};
  for (const int trials : {3, 4, 5, 6}) {
    Study study = make_study(surface, space);
    study.limits.max_trials = trials;
    testing::Bench bench = run_guided(study, [surface](const testing::Trial& trial) { return surface.answer(trial); });
    ASSERT_TRUE(bench.run()) << bench.error();
    const std::string logs = joined(bench.logs());
    for (const int bucket : buckets) {
      if (logs.find(fmt::format("reduce_bucket_size {} instead", bucket)) == std::string::npos) continue;
      const auto has_it = [bucket](const testing::Trial& trial) {
        return trial.config.value("/zero_optimization/reduce_bucket_size"_json_pointer, 0) == bucket;
      };
      EXPECT_TRUE(std::any_of(bench.asked().begin(), bench.asked().end(), has_it)) << trials << " trials\n" << logs;
    }
  }
}

// The best trial's stage lacks an axis of the other stage. There the comparison takes the value of a trial near it, and
// not one that was measured at a far smaller micro batch only.
TEST(Sensitivity, AStageIsComparedWithTheValuesOfATrialNearTheBest) {
  const Study study = make_study(Surface(), small_space({1, 2}));
  zero_model::ModelSpace space(study);
  zero_model::Surrogate surrogate(study, space);
  zero_model::Acquisition acquisition(space, surrogate, study.seed);
  TrialId id = 0;
  const auto learn = [&](const zero_model::Configuration& configuration, int64_t micro_batch, double throughput) {
    surrogate.learn({id++, {space.arm(configuration), micro_batch}, Outcome::completed, throughput, {}});
    surrogate.update_to_the_last();
  };
  const std::string stage = "ZeRO stage 2 instead of 1: ";
  learn({1, {0}}, 2, 50);
  learn({1, {0}}, 8, 90);
  learn({1, {0}}, 16, 100);
  learn({2, {0, 1}}, 2, 49);
  EXPECT_EQ(joined(acquisition.sensitivity()).find(stage), std::string::npos);
  learn({2, {0, 0}}, 16, 60);
  const std::string lines = joined(acquisition.sensitivity());
  ASSERT_NE(lines.find(stage), std::string::npos) << lines;
  EXPECT_NEAR(std::stod(lines.substr(lines.find(stage) + stage.size())), -40, 4) << lines;
}

// Where nothing but noise makes a difference, no choice is stated to matter.
TEST(Sensitivity, NoiseIsNoFinding) {
  const Surface surface;
  for (const uint64_t seed : {1, 2, 3, 4}) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    Study study = make_study(surface, small_space({0, 1, 2}));
    study.limits.max_trials = 20;
    testing::Bench bench = run_guided(study, [&](const testing::Trial& trial) {
      testing::Answer answer = surface.answer(trial);
      const double noise = std::exp(0.6 * normal(random));
      if (answer.outcome == Outcome::completed) answer.metrics = {{"throughput", 1000 * noise}};
      return answer;
    });
    ASSERT_TRUE(bench.run()) << bench.error();
    for (const std::string& line : bench.logs()) {
      const size_t at = line.find("+- ");
      if (at == std::string::npos || line.find(" instead of ") == std::string::npos) continue;
      const double effect = std::stod(line.substr(line.find(": ") + 2)), deviation = std::stod(line.substr(at + 3));
      EXPECT_LT(std::abs(effect), 3 * deviation) << line;
    }
  }
}

TEST(Sensitivity, IsNotLoggedWhereNothingWasMeasured) {
  const Surface surface;
  Study study = make_study(surface, small_space({1}));
  study.limits.max_trials = 30;
  testing::Bench bench =
      run_guided(study, [](const testing::Trial&) { return testing::Answer::failed("no such file"); });
  ASSERT_TRUE(bench.run()) << bench.error();
  EXPECT_EQ(joined(bench.logs()).find("what mattered"), std::string::npos);
}

}  // namespace
}  // namespace dsat::tests
