// Concurrent trials spread by themselves over micro batches and stages.
// A study of the guided plugin with twelve slots, looked at after its first trials.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "guided/guided.h"
#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

class Choose : public ::testing::Test {
 protected:
  // The trials, but for the first few and for repeats, that are asked for before so many have ended.
  std::vector<testing::Trial> first_batch(const Surface& surface, int64_t slots) {
    constexpr int64_t kFirst = 4;
    Study study = make_study(surface, small_space({1, 2, 3}));
    study.limits.max_trials = 64;
    study.limits.max_concurrent_trials = slots;
    testing::Bench bench(testing::factory<Guided>(), "guided", study,
                         [surface](const testing::Trial& trial) { return surface.answer(trial); });
    bench.start();
    for (int64_t i = 0; i < slots && bench.step(); ++i) {
    }
    std::vector<testing::Trial> asked(bench.asked().begin() + kFirst, bench.asked().end());
    const auto repeats = [](const testing::Trial& trial) { return trial.repeat; };
    asked.erase(std::remove_if(asked.begin(), asked.end(), repeats), asked.end());
    return asked;
  }
};

TEST_F(Choose, ABatchSpreadsOverMicroBatchesAndStages) {
  const Surface surface;
  const std::vector<testing::Trial> batch = first_batch(surface, 12);
  ASSERT_GE(batch.size(), 6u);
  std::set<int64_t> micro_batches;
  std::set<int> stages;
  std::set<std::string> all;
  for (const testing::Trial& trial : batch) {
    micro_batches.insert(trial.config.at("train_micro_batch_size_per_gpu").get<int64_t>());
    stages.insert(trial.config.at("zero_optimization").at("stage").get<int>());
    all.insert(trial.config.dump());
  }
  EXPECT_GE(micro_batches.size(), 4u);
  EXPECT_GE(stages.size(), 2u);
  EXPECT_EQ(all.size(), batch.size()) << "the same was asked for twice";
}

}  // namespace
}  // namespace dsat::tests
