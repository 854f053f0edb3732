// What a raised trial limit takes back: events, trials and states made by hand in a journal, and what is left of them.
#include "study/resume/rewind.h"

#include <fmt/format.h>

#include "host/study/study_fixture.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RewindTest : public TempDirTest {
 protected:
  RewindTest() : journal_(Journal::create(dir())) { journal_->put_meta("max_trials", 2); }

  void add_trial(TrialState state, std::optional<Outcome> outcome, uint32_t attempt) {
    Trial trial;
    trial.record.id = trials_.size();
    trial.record.outcome = outcome;
    trial.record.attempt = attempt;
    trial.record.config = trial.record.overrides = Json::object();
    trial.state = state;
    journal_->put_trial(trial);
    trials_.push_back(std::move(trial));
  }
  static Op request(std::optional<uint64_t> id) {
    Op op;
    op.trial = id;
    op.refused = !id;
    return op;
  }
  static Op finish() {
    Op op;
    op.kind = Op::Kind::finish;
    return op;
  }
  void add_event(StrategyEvent::Kind kind, uint64_t trial, std::vector<Op> ops) {
    JournalEvent entry;
    entry.event.kind = kind;
    entry.event.trial = trial;
    entry.ops = std::move(ops);
    entry.seq = journal_->append_event(entry.phase, entry.event, entry.ops);
    events_.push_back(std::move(entry));
  }
  std::set<uint64_t> rewind(int max_trials, bool more_time = false) {
    return rewind_if_limit_raised(max_trials, more_time, searches_, *journal_, trials_, events_);
  }

  std::unique_ptr<Journal> journal_;
  std::vector<Trial> trials_;
  std::vector<JournalEvent> events_;
  Searches searches_;
};

TEST_F(RewindTest, ALimitThatIsNotRaisedTakesNothingBack) {
  add_trial(TrialState::delivered, Outcome::completed, 1);
  add_event(StrategyEvent::Kind::start, 0, {request(0), request(std::nullopt)});
  EXPECT_THAT(rewind(2), IsEmpty());
  EXPECT_EQ(events_.size(), 1u);
  EXPECT_EQ(journal_->meta("max_trials"), Json(2));
}

TEST_F(RewindTest, TheHostsEndOfASearchIsTakenBackWithARaisedLimitOrTimeGivenAnew) {
  add_trial(TrialState::delivered, Outcome::completed, 1);
  add_trial(TrialState::delivered, Outcome::stopped, 1);
  add_event(StrategyEvent::Kind::start, 0, {request(0), request(1)});
  add_event(StrategyEvent::Kind::exited, 0, {});
  add_event(StrategyEvent::Kind::exited, 1, {});  // the searcher never had it
  searches_.end({2, "early stopping", false});
  EXPECT_THAT(rewind(2, true), IsEmpty()) << "time was not what ended it";
  searches_.end({2, "the time budget is spent", true});
  EXPECT_THAT(rewind(2, true), ElementsAre(1));
  EXPECT_FALSE(searches_.was_ended_by_host());
  EXPECT_EQ(searches_.current().counts_from, 2u) << "with as much patience as at its start";
  EXPECT_EQ(events_.size(), 2u);
  EXPECT_EQ(trials_[1].state, TrialState::waiting);
  EXPECT_EQ(trials_[0].state, TrialState::delivered);
}

TEST_F(RewindTest, WithoutAnAnswerThatTheLimitShapedNothingIsTakenBack) {
  add_trial(TrialState::delivered, Outcome::completed, 1);
  add_event(StrategyEvent::Kind::start, 0, {request(0)});
  EXPECT_THAT(rewind(9), IsEmpty());
  EXPECT_EQ(events_.size(), 1u);
  EXPECT_EQ(journal_->meta("max_trials"), Json(9)) << "the new limit is kept all the same";
}

TEST_F(RewindTest, ADuplicateWhoseOriginalIsNotUndoneKeepsItsAnswer) {
  add_trial(TrialState::delivered, Outcome::stopped, 1);
  add_trial(TrialState::delivered, Outcome::stopped, 0);
  trials_[1].record.duplicate_of = 0;
  add_event(StrategyEvent::Kind::start, 0, {request(0), request(1)});
  add_event(StrategyEvent::Kind::exited, 0, {});
  add_event(StrategyEvent::Kind::exited, 1, {request(std::nullopt)});
  EXPECT_THAT(rewind(9), ElementsAre(1));
  EXPECT_EQ(trials_[1].state, TrialState::ended) << "waiting, it would wait for ever";
}

TEST_F(RewindTest, ALimitThatNoIntegerHoldsIsNamed) {
  journal_->put_meta("max_trials", 1e300);
  EXPECT_THAT(error_of([&] { rewind(9); }, DSAT_INTERNAL), HasSubstr("max_trials is damaged"));
}

TEST_F(RewindTest, TheFirstRefusalAndAllThatFollowedHappenAgain) {
  add_trial(TrialState::delivered, Outcome::completed, 1);
  add_trial(TrialState::delivered, Outcome::stopped, 0);
  add_trial(TrialState::delivered, Outcome::completed, 1);
  add_trial(TrialState::waiting, std::nullopt, 0);
  add_event(StrategyEvent::Kind::start, 0, {request(0), request(1)});
  add_event(StrategyEvent::Kind::exited, 0, {request(2), request(3), request(std::nullopt)});
  add_event(StrategyEvent::Kind::exited, 2, {finish()});
  add_event(StrategyEvent::Kind::exited, 1, {});
  EXPECT_THAT(rewind(9), ElementsAre(0, 1, 2));
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(journal_->events().size(), 1u);
  ASSERT_EQ(trials_.size(), 3u) << "what never ran is gone";
  EXPECT_EQ(journal_->trials().size(), 3u);
  EXPECT_EQ(trials_[0].state, TrialState::ended) << "its exit is delivered again";
  EXPECT_EQ(trials_[1].state, TrialState::waiting) << "only the finish had stopped it";
  EXPECT_FALSE(trials_[1].record.outcome);
  EXPECT_EQ(trials_[2].state, TrialState::delivered) << "it ran: nobody waits for it, and it answers at no cost";
}

class RaisedLimitTest : public StudyTest {};

TEST_F(RaisedLimitTest, ATrialWithTheIdOfOneThatWasTakenBackHasItsOwnRestarts) {
  StudyOptions limited =
      scripted({{"start", {try_micro_batch(2), try_micro_batch(3)}}, {"exit 2", {try_micro_batch(4)}}});
  limited.max_trials = 4;
  limited.baseline = true;
  limited.finals = 1;
  limited.max_restarts = 1;
  std::set<std::pair<uint64_t, int64_t>> failed_once;
  const auto fails_first = [&](const TrialSpec& spec) {
    const bool is_first = failed_once.insert({spec.id, micro_batch(spec.config)}).second;
    if (spec.id < 3 || !is_first) return completed(100.0 * static_cast<double>(micro_batch(spec.config)));
    return failed(Outcome::failed, fmt::format("flaky {} {}", spec.id, micro_batch(spec.config)));
  };
  Session first(plan_of(limited));
  first.runner.answer = fails_first;
  first.run_new();
  ASSERT_GT(first.trials().at(3).phase, Phase::searcher);
  ASSERT_EQ(first.trials()[3].record.attempt, 2u);
  first.coordinator.reset();
  first.close_journal();
  Plan raised = resumed_plan(first.plan.dir);
  raised.max_trials = 8;
  Session second(raised);
  second.runner.answer = fails_first;
  second.resume();
  const Trial trial = second.trials().at(3);
  EXPECT_EQ(trial.phase, Phase::searcher);
  EXPECT_EQ(trial.record.attempt, 2u);
  EXPECT_EQ(trial.record.outcome, Outcome::completed);
}

}  // namespace
}  // namespace dsat::host
