// What becomes of a strategy's requests within one event: the requests of one NewTrials after another over one table of
// trials.
#include "study/turn/new_trials.h"

#include "host/study/study_fixture.h"
#include "study/state/admission.h"

namespace dsat::host {
namespace {

class NewTrialsTest : public StudyTest {
 protected:
  NewTrialsTest() : plan_(plan_of(options())), baseline_(admit(plan_, Json::object()).identity) {}

  NewTrials event() { return {plan_, table_, culprits_, Phase::searcher, plan_.max_trials, baseline_, loop_}; }
  static Op request(int64_t micro_batch, bool repeat = false) {
    Op op;
    op.overrides = {{config::kMicroBatchKey, micro_batch}};
    op.repeat = repeat;
    return op;
  }
  void accept(NewTrials& event) {
    for (Trial& trial : event.take()) table_.add(std::move(trial), {});
  }

  Plan plan_;
  std::string baseline_;
  Loop loop_;
  TrialTable table_;
  Culprits culprits_;
};

TEST_F(NewTrialsTest, IdsGoOnFromTheTableAndAreKnownFromTheRequestOn) {
  NewTrials first = event();
  EXPECT_EQ(first.create_trial(request(2)), 0u);
  EXPECT_TRUE(first.knows_trial(0));
  EXPECT_FALSE(first.knows_trial(1));
  accept(first);
  NewTrials second = event();
  EXPECT_EQ(second.create_trial(request(4)), 1u);
}

TEST_F(NewTrialsTest, AnEventThatIsNotAcceptedLeavesNothingBehind) {
  event().create_trial(request(2));
  EXPECT_EQ(table_.size(), 0u);
  NewTrials next = event();
  EXPECT_EQ(next.create_trial(request(2)), 0u);
  EXPECT_EQ(next.take()[0].record.kind, TrialKind::search);
}

TEST_F(NewTrialsTest, AConfigurationIsADuplicateOfAnEarlierOneInTheTableOrInTheEvent) {
  NewTrials first = event();
  first.create_trial(request(2));
  first.create_trial(request(2));
  accept(first);
  EXPECT_EQ(table_[1].record.duplicate_of, 0u);
  NewTrials second = event();
  second.create_trial(request(2));
  second.create_trial(request(2, true));
  const std::vector<Trial> trials = second.take();
  EXPECT_EQ(trials[0].record.duplicate_of, 0u);
  EXPECT_EQ(trials[1].record.kind, TrialKind::repeat);
  EXPECT_FALSE(trials[1].record.duplicate_of);
}

TEST_F(NewTrialsTest, AtTheLimitOnlyWhatCostsARunIsRefused) {
  plan_.max_trials = 2;
  NewTrials first = event();
  first.create_trial(request(1));
  accept(first);
  NewTrials second = event();
  EXPECT_EQ(second.create_trial(request(2)), 1u);
  EXPECT_EQ(second.create_trial(request(3)), std::nullopt);
  EXPECT_EQ(second.create_trial(request(2)), 2u);
  EXPECT_EQ(second.create_trial(request(-1)), 3u) << "an invalid one is a trial that has ended";
}

TEST_F(NewTrialsTest, OneEventHasAnEndToFruitlessRequests) {
  NewTrials asking = event();
  asking.create_trial(request(1));
  for (int i = 0; i < kFruitlessRequests; ++i) ASSERT_TRUE(asking.create_trial(request(1)));
  EXPECT_FALSE(asking.create_trial(request(1)));
  EXPECT_TRUE(asking.create_trial(request(2)));
  EXPECT_TRUE(asking.create_trial(request(2)));
}

}  // namespace
}  // namespace dsat::host
