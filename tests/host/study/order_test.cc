// Strategies hear of trials in the order of their ids whatever the order of their ends, within a window.
#include <random>

#include "study_fixture.h"

namespace dsat::host {
namespace {

class OrderTest : public StudyTest {
 protected:
  // The configurations asked for, in order, of a study whose trials end in the order that `shuffle` gives.
  std::vector<std::string> decisions(int concurrency, unsigned shuffle, uint64_t seed = 42) {
    StudyOptions walk = options("walker", {{"ahead", 8}, {"count", 30}});
    walk.max_concurrent_trials = concurrency;
    walk.seed = seed;
    walk.output_dir =
        dir() / (std::to_string(concurrency) + "-" + std::to_string(shuffle) + "-" + std::to_string(seed));
    Session session(plan_of(walk));
    std::mt19937 random(shuffle);
    session.runner.pick = [&random](size_t running) { return random() % running; };
    const StudyResult result = session.run_new();
    EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
    std::vector<std::string> lines;
    for (const Trial& trial : session.trials()) lines.push_back(trial.record.overrides.dump() + trial.record.note);
    return lines;
  }
};

TEST_F(OrderTest, ManyOrdersOfEndsGiveOneSearch) {
  const std::vector<std::string> expected = decisions(8, 0);
  ASSERT_GT(expected.size(), 25u);
  for (unsigned shuffle = 1; shuffle <= 8; ++shuffle) EXPECT_EQ(decisions(8, shuffle), expected) << shuffle;
}

TEST_F(OrderTest, OneAtATimeIsRepeatableAndAnotherSeedSearchesDifferently) {
  const std::vector<std::string> expected = decisions(1, 0);
  EXPECT_EQ(decisions(1, 1), expected);
  EXPECT_NE(decisions(1, 0, 43), expected);
}

// The elder never ends by itself: the younger one's exit stops it, so it must have been told first.
TEST_F(OrderTest, AYoungerTrialIsToldWhenTheWindowIsOver) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 1", {{{"stop", 0}}}}})));
  session.runner.held = {0};
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_THAT(session.heard(), ::testing::ElementsAre("start", "result 1", "exit 1 completed", "exit 0 stopped"));
}

}  // namespace
}  // namespace dsat::host
