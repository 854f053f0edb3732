// asha's ladder at divisors 2, 4 and 8: how many trials a configuration gets in each rung, and how many are promoted.
// Studies in which every micro batch fits and each configuration has a speed of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
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

std::string name_of(const testing::Trial& trial) { return trial.config["zero_optimization"].dump(); }

// Nothing is known of the memory and the ceiling is far, so a search is as long as its rung allows.
Study open_study(int max_trials, int max_concurrent_trials) {
  Surface surface;
  surface.tells_peak = false;
  surface.activation_bytes = 1e3;
  Study study = make_study(surface, wide_space());
  study.device_memory_bytes.reset();
  study.profile["device_memory_bytes"] = nullptr;
  study.limits.max_trials = max_trials;
  study.limits.max_concurrent_trials = max_concurrent_trials;
  return study;
}

// Each configuration is a little slower than the one drawn before it, and larger batches are a little faster.
testing::AnswerFunction slower_and_slower(Ladder& ladder) {
  return [&ladder](const testing::Trial& trial) {
    const std::string name = name_of(trial);
    if (++ladder.trials[name] == 1) ladder.order.push_back(name);
    const auto place = std::find(ladder.order.begin(), ladder.order.end(), name) - ladder.order.begin();
    const double size = std::log2(static_cast<double>(trial.micro_batch()) + 1);
    return testing::Answer::completed({{"throughput", 1000.0 - static_cast<double>(place) + size / 1000}},
                                      std::nullopt);
  };
}

Ladder climb(int max_trials, const Json& options) {
  Ladder ladder;
  testing::Bench bench(testing::factory<Asha>(), "asha", open_study(max_trials, 1), slower_and_slower(ladder), options);
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

constexpr int kRungs = 4;
int allowance(int rung) { return 1 << rung; }  // trials, of --divisor 2 and --min-binary-search-trials 1

// Whose turn it may be, by the rule: the best half of those that have completed `rung` and have not gone on.
std::set<std::string> promotable(const Ladder& ladder, const std::map<std::string, int>& asked, int rung) {
  std::vector<std::string> completed;  // the fastest first
  for (const std::string& name : ladder.order) {
    if (ladder.trials.at(name) >= allowance(rung)) completed.push_back(name);
  }
  completed.resize(completed.size() / 2);
  std::set<std::string> waiting;
  for (const std::string& name : completed) {
    if (asked.at(name) == allowance(rung)) waiting.insert(name);
  }
  return waiting;
}

// The highest rung with somebody to promote; -1: none.
int highest_waiting(const Ladder& ladder, const std::map<std::string, int>& asked) {
  for (int rung = kRungs - 2; rung >= 0; --rung) {
    if (!promotable(ladder, asked, rung).empty()) return rung;
  }
  return -1;
}

TEST(Rungs, ThePromotedAreOfTheHighestRungsBestHalfAndComeBeforeAnythingNew) {
  Ladder ladder;
  testing::Bench bench(testing::factory<Asha>(), "asha", open_study(120, 6), slower_and_slower(ladder),
                       {{"divisor", 2}, {"min-binary-search-trials", 1}, {"max-rungs", kRungs}});
  // Trials end in another order than they began.
  bench.end_in_order([turn = size_t{0}](size_t running) mutable { return (turn += 5) % running; });
  std::map<std::string, int> asked;
  std::set<int> promoted_from;
  size_t seen = 0;
  bench.start();
  do {
    for (; seen < bench.asked().size(); ++seen) {
      const std::string name = name_of(bench.asked()[seen]);
      const int before = asked[name], waiting = highest_waiting(ladder, asked);
      if (before == 0) {
        EXPECT_EQ(waiting, -1) << "trial " << seen << " is a new configuration";
      } else if (waiting >= 0 && before == allowance(waiting)) {
        EXPECT_TRUE(promotable(ladder, asked, waiting).count(name)) << "trial " << seen;
        promoted_from.insert(waiting);
      } else {
        for (int rung = 0; rung < kRungs; ++rung) EXPECT_NE(before, allowance(rung)) << "trial " << seen;
      }
      ++asked[name];
    }
  } while (bench.step());
  EXPECT_EQ(bench.error(), "");
  EXPECT_EQ(promoted_from, (std::set<int>{0, 1, 2}));
}

}  // namespace
}  // namespace dsat::tests
