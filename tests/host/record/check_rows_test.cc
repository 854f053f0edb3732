// What rows of a journal may say of each other: one test a rule that damage can break.
#include "record/check_rows.h"

#include <gmock/gmock.h>

#include <functional>

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Trial delivered_trial(uint64_t id) {
  Trial trial;
  trial.record.id = id;
  trial.record.outcome = Outcome::completed;
  trial.record.started_at = "2026-01-01T00:00:00.000001Z";
  trial.state = TrialState::delivered;
  return trial;
}

Op asks_for(uint64_t trial) {
  Op op;
  op.overrides = Json::object();
  op.trial = trial;
  return op;
}

JournalEvent event(uint64_t seq, StrategyEvent::Kind kind, uint64_t trial, std::vector<Op> ops) {
  JournalEvent entry;
  entry.seq = seq;
  entry.event.kind = kind;
  entry.event.trial = trial;
  if (kind == StrategyEvent::Kind::start) entry.event.study = Json::object();
  if (kind == StrategyEvent::Kind::result) entry.event.metrics = Json::object();
  entry.ops = std::move(ops);
  return entry;
}

// Two trials, asked for one after the other, both delivered.
struct Rows {
  std::vector<Trial> trials{delivered_trial(0), delivered_trial(1)};
  std::vector<JournalEvent> events{
      event(0, StrategyEvent::Kind::start, 0, {asks_for(0)}), event(1, StrategyEvent::Kind::result, 0, {}),
      event(2, StrategyEvent::Kind::exited, 0, {asks_for(1)}), event(3, StrategyEvent::Kind::exited, 1, {})};
  std::string misfit() const {
    const auto found = find_misfit(trials, events);
    return found ? to_string(*found) : "";
  }
};

std::string misfit_after(const std::function<void(Rows&)>& damage) {
  Rows rows;
  damage(rows);
  return rows.misfit();
}

TEST(CheckRows, WholeRowsFit) { EXPECT_EQ(Rows().misfit(), ""); }

TEST(CheckRows, ATrialIsOverExactlyWhenItHasAnOutcome) {
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.trials[1].record.outcome.reset(); }),
              AllOf(StartsWith("trial 1: "), HasSubstr("no outcome")));
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.trials[0].state = TrialState::running; }),
              AllOf(StartsWith("trial 0: "), HasSubstr("not over")));
}

TEST(CheckRows, ATrialThatRunsWasStarted) {
  EXPECT_THAT(misfit_after([](Rows& rows) {
                rows.trials[1].record.outcome.reset();
                rows.trials[1].record.started_at = "";
                rows.trials[1].state = TrialState::running;
              }),
              AllOf(StartsWith("trial 1: "), HasSubstr("never started")));
}

TEST(CheckRows, TheEndOfATrialThatIsAskedForIsDelivered) {
  Rows rows;
  const auto without_exit = [&](uint64_t first_trial = 0) {
    const auto found = find_lost_exit(rows.trials, rows.events, first_trial);
    return found ? to_string(*found) : "";
  };
  rows.trials[1].phase = Phase::searcher;
  EXPECT_EQ(without_exit(), "");
  rows.events.pop_back();
  EXPECT_EQ(rows.misfit(), "");
  EXPECT_THAT(without_exit(), AllOf(StartsWith("trial 1: "), HasSubstr("end is lost")));
  EXPECT_EQ(without_exit(2), "") << "an earlier searcher asked for it";
  rows.events.pop_back();
  EXPECT_THAT(without_exit(), AllOf(StartsWith("trial 0: "), HasSubstr("end is lost")))
      << "nobody asks for trial 1 any more";
  rows.trials[0].state = TrialState::ended;
  EXPECT_EQ(without_exit(), "");
}

TEST(CheckRows, TheFirstEventIsAStart) {
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.events[0].event.kind = StrategyEvent::Kind::result; }),
              AllOf(StartsWith("event 0: "), HasSubstr("no start")));
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.events[0].event.study = Json::array(); }),
              AllOf(StartsWith("event 0: "), HasSubstr("without a study")));
}

TEST(CheckRows, AnEventTellsOfATrialThatIsThereAndOver) {
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.events[3].event.trial = 7; }),
              AllOf(StartsWith("event 3: "), HasSubstr("trial 7")));
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.events[3].event.outcome = 99; }),
              AllOf(StartsWith("event 3: "), HasSubstr("valid outcome")));
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.events[1].event.metrics = 5; }), StartsWith("event 1: its metrics"));
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.trials[1].state = TrialState::ended; }),
              AllOf(StartsWith("event 3: "), HasSubstr("not over")));
}

TEST(CheckRows, AnEndIsDeliveredOnce) {
  EXPECT_THAT(misfit_after([](Rows& rows) { rows.events[3].event.trial = 0; }),
              AllOf(StartsWith("event 3: "), HasSubstr("trial 0 again")));
}

TEST(CheckRows, OpsNameTrialsThatAreThere) {
  const auto with_op = [](const std::function<void(Op&)>& change) {
    return misfit_after([&](Rows& rows) { change(rows.events[2].ops[0]); });
  };
  EXPECT_THAT(with_op([](Op& op) { op.trial = 2; }), AllOf(StartsWith("event 2: "), HasSubstr("trial 2")));
  EXPECT_THAT(with_op([](Op& op) { op.trial.reset(); }), AllOf(StartsWith("event 2: "), HasSubstr("no trial")));
  EXPECT_EQ(with_op([](Op& op) { op.trial.reset(), op.refused = true; }), "") << "the limit was reached";
  EXPECT_THAT(with_op([](Op& op) { op.overrides = "text"; }), AllOf(StartsWith("event 2: "), HasSubstr("overrides")));
  EXPECT_THAT(with_op([](Op& op) { op.kind = Op::Kind::set_profile; }), StartsWith("event 2: its profile"));
}

}  // namespace
}  // namespace dsat::host
