// asha's ladder at divisors 2, 4 and 8: how many trials a configuration gets in each rung, and how many are promoted.
// Studies in which every micro batch fits and each configuration has a speed of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "asha/asha.h"
#include "plugins/surface.h"

namespace dsat::tests {
namespace {

// One stage with so many choices that new configurations never run out.
config::Space wide_space() {
  config::Space space = small_space({1});
  for (int i = 0; i < 400; ++i) space.stages[0].axes[0].values.push_back(1000000 + i);
  return space;
}

struct Ladder {
  std::vector<std::string> order;     // of the configurations, as they were drawn
  std::map<std::string, int> trials;  // of each
};

// Each configuration is a little slower than the one drawn before it, and larger batches are a little faster. Nothing
// is known of the memory and the ceiling is far, so a search is as long as its rung allows.
Ladder climb(int max_trials, const Json& options) {
  Surface surface;
  surface.tells_peak = false;
  surface.activation_bytes = 1e3;
  Study study = make_study(surface, wide_space());
  study.device_memory_bytes.reset();
  study.profile["device_memory_bytes"] = nullptr;
  study.limits.max_trials = max_trials;
  Ladder ladder;
  testing::Bench bench(
      testing::factory<Asha>(), "asha", study,
      [&](const testing::Trial& trial) {
        const std::string name = trial.config["zero_optimization"].dump();
        if (++ladder.trials[name] == 1) ladder.order.push_back(name);
        if (!surface.fits(trial.config)) return testing::Answer::out_of_memory();
        const auto place = std::find(ladder.order.begin(), ladder.order.end(), name) - ladder.order.begin();
        const double size = std::log2(static_cast<double>(trial.micro_batch()) + 1);
        return testing::Answer::completed({{"throughput", 1000.0 - static_cast<double>(place) + size / 1000}},
                                          std::nullopt);
      },
      options);
  EXPECT_TRUE(bench.run()) << bench.error();
  return ladder;
}

class Divisors : public ::testing::TestWithParam<int> {};

// The first ones drawn are the fastest: of n configurations the first n / divisor are promoted, and no other.
TEST_P(Divisors, TheBestShareOfARungIsPromotedAndGetsTheNextRungsTrials) {
  const int divisor = GetParam();
  const Ladder ladder = climb(40, {{"divisor", divisor}, {"min-binary-search-trials", 1}, {"max-rungs", 2}});
  const size_t share = ladder.order.size() / static_cast<size_t>(divisor);
  ASSERT_GE(share, 1u);
  for (size_t i = 0; i < ladder.order.size(); ++i) {
    const int trials = ladder.trials.at(ladder.order[i]);
    if (i + 1 < share) {
      EXPECT_EQ(trials, divisor) << i;
    } else if (i + 1 == share) {
      EXPECT_LE(trials, divisor);  // its turn may come when the trials are spent
    } else {
      EXPECT_EQ(trials, 1) << i;
    }
  }
}

TEST_P(Divisors, EarlyStoppingGrantsTheGrowthFromTheStart) {
  const int divisor = GetParam();
  const Ladder ladder =
      climb(3 * divisor,
            {{"divisor", divisor}, {"min-binary-search-trials", 1}, {"asha-early-stopping", 1}, {"max-rungs", 1}});
  EXPECT_EQ(ladder.order.size(), 3u);
  for (const auto& [name, trials] : ladder.trials) EXPECT_EQ(trials, divisor);
}

INSTANTIATE_TEST_SUITE_P(Each, Divisors, ::testing::Values(2, 4, 8));

}  // namespace
}  // namespace dsat::tests
