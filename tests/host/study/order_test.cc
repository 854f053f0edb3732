// Trials are delivered in the order of their ids whatever the order of their ends, within a window. Many shuffled
// orders of ends have to give one search.
#include <random>

#include "host/study/study_fixture.h"

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

// The elder never ends by itself: the younger one's exit stops it, so that one is delivered first.
TEST_F(OrderTest, AYoungerTrialIsDeliveredWhenTheWindowIsOver) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 1", {{{"stop", 0}}}}})));
  session.runner.held = {0};
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_THAT(session.deliveries(), ::testing::ElementsAre("start", "result 1", "exit 1 completed", "exit 0 stopped"));
}

// What waits takes the slot of one that has ended and is not delivered yet.
TEST_F(OrderTest, StrategiesAreAskedToKeepOneTrialMoreOpenForEveryFive) {
  const std::map<int, int> open_by_concurrency{{1, 1}, {4, 4}, {5, 6}, {9, 10}, {16, 19}};
  for (const auto& [concurrency, open] : open_by_concurrency) {
    StudyOptions given = scripted({{"start", {try_micro_batch(1)}}});
    given.max_concurrent_trials = concurrency;
    given.output_dir = dir() / std::to_string(concurrency);
    Session session(plan_of(given));
    ASSERT_EQ(session.run_new().status, StudyStatus::completed);
    const std::vector<JournalEvent> events = session.journal->events();
    const Json limits = events.at(0).event.study.at("limits");
    EXPECT_EQ(limits.at("max_concurrent_trials"), concurrency);
    EXPECT_EQ(limits.at("open_trials"), open);
  }
}

TEST_F(OrderTest, ASpareTrialRunsWhileAnEndedOneWaitsForItsElder) {
  Json start = Json::array();
  for (int64_t samples = 1; samples <= 6; ++samples) start.push_back(try_micro_batch(samples));
  StudyOptions given = scripted({{"start", start}, {"exit 1", {{{"stop", 0}}}}});
  given.max_concurrent_trials = 5;
  Session session(plan_of(given));
  session.runner.held = {0};
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_EQ(session.runner.most_at_once, 5u);
  const auto ids = session.runner.started_ids();
  const auto spare = std::find(ids.begin(), ids.end(), 5u);
  EXPECT_NE(spare, ids.end());
  EXPECT_EQ(session.deliveries().at(1), "result 1") << "nothing was delivered before the spare one had its slot";
}

}  // namespace
}  // namespace dsat::host
