// The count that early stopping goes by, over lists of trials made by hand: which trials start it anew, which it leaves
// out.
#include <gtest/gtest.h>

#include "study/watch/watches.h"

namespace dsat::host {
namespace {

Trial trial(double throughput, Outcome outcome = Outcome::completed) {
  Trial trial;
  trial.state = TrialState::delivered;
  trial.record.outcome = outcome;
  if (outcome == Outcome::completed) trial.record.metrics = {{"throughput", throughput}, {"latency", 100 - throughput}};
  return trial;
}

int since_best(const std::vector<Trial>& trials) { return trials_since_best(trials, "throughput", true, 0); }

TEST(TrialsSinceBest, CountsWhatBroughtNothingBetter) {
  EXPECT_EQ(since_best({}), 0);
  EXPECT_EQ(since_best({trial(5)}), 0);
  EXPECT_EQ(since_best({trial(5), trial(4), trial(5)}), 2) << "as good is not better";
  EXPECT_EQ(since_best({trial(5), trial(4), trial(6), trial(1)}), 1);
  EXPECT_EQ(trials_since_best({trial(5), trial(6), trial(1)}, "latency", false, 0), 1);
}

TEST(TrialsSinceBest, FailuresCountOnceThereIsSomethingToCompareWith) {
  EXPECT_EQ(since_best({trial(0, Outcome::out_of_memory), trial(0, Outcome::failed)}), 0);
  EXPECT_EQ(since_best({trial(5), trial(0, Outcome::out_of_memory), trial(0, Outcome::failed)}), 2);
}

TEST(TrialsSinceBest, EarlierTrialsAreComparedWithAndDoNotCount) {
  std::vector<Trial> trials{trial(5), trial(4), trial(3), trial(4)};
  for (size_t id = 0; id < trials.size(); ++id) trials[id].record.id = id;
  EXPECT_EQ(trials_since_best(trials, "throughput", true, 2), 2);
}

TEST(TrialsSinceBest, LeavesOutWhatMeasuredNothingForTheSearch) {
  Trial running = trial(1), duplicate = trial(1), profile = trial(1);
  running.state = TrialState::ended;
  duplicate.record.duplicate_of = 0;
  profile.phase = Phase::profiler;
  EXPECT_EQ(since_best({trial(5), running, duplicate, profile, trial(0, Outcome::stopped)}), 0);
}

}  // namespace
}  // namespace dsat::host
