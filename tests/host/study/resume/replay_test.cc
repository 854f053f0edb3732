// A strategy that is brought back from a journal: with the answers of then, from its state where there is one, without
// a word in the log. Fixture plugins are the strategies; each test writes their events itself.
#include "study/resume/replay.h"

#include <fmt/format.h>

#include "host/study/study_fixture.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::IsEmpty;

// Grants so many requests and refuses the rest.
class Grants : public RequestAnswers {
 public:
  Grants(uint64_t first_id, uint64_t count) : next_(first_id), end_(first_id + count) {}
  std::optional<uint64_t> create_trial(const Op&) override {
    if (next_ == end_) return std::nullopt;
    return next_++;
  }
  uint64_t next_id() const override { return next_; }

 private:
  uint64_t next_, end_;
};

constexpr int kMaxTrials = 100;

class ReplayTest : public StudyTest {
 protected:
  ReplayTest() : journal_(Journal::create(dir())), log_(loop_) {}

  void begin(const std::string& plugin, const Json& plugin_options, uint64_t granted, uint64_t first_id = 0) {
    plan_ = plan_from_json(to_json(plan_of(options(plugin, plugin_options))));  // as a resumed study has it
    load_plugin(plan_.searcher, plan_, false);
    plan_.max_trials = kMaxTrials;
    first_id_ = first_id;
    answers_ = std::make_unique<Grants>(first_id, granted);
    strategy_ = open_strategy(plan_, Phase::searcher, log_);
    StrategyEvent start;
    start.study = description_for_search(plan_);
    hand_over(start);
  }
  void begin_script(const Json& script, uint64_t granted, uint64_t first_id = 0) {
    begin("scripted", {{"script", script.dump()}}, granted, first_id);
  }
  void hand_over(const StrategyEvent& event) {
    last_seq_ = journal_->append_event(Phase::searcher, event, strategy_->handle(event, *answers_));
  }
  void hand_over(StrategyEvent::Kind kind, uint64_t trial) {
    StrategyEvent event;
    event.kind = kind;
    event.trial = trial;
    event.metrics = {{"throughput", 100.0 + static_cast<double>(trial)}};
    hand_over(event);
  }
  void save_state() { journal_->put_state(Phase::searcher, last_seq_, strategy_->save()); }

  // What a host that starts now makes of the journal.
  StrategyRun replay() {
    log_.forward(observer_);
    observer_.logs.clear();
    return replay_strategy(plan_, events_.empty() ? journal_->events() : events_, first_id_, kMaxTrials, *journal_,
                           log_, observer_);
  }
  // As if the plugin had answered an event in another way.
  void change_answer(size_t event) {
    if (events_.empty()) events_ = journal_->events();
    events_[event].ops_text = "[]";
  }

  Plan plan_;
  std::unique_ptr<Journal> journal_;
  Loop loop_;
  PluginLog log_;
  StudyLog observer_;
  std::unique_ptr<RequestAnswers> answers_;
  std::unique_ptr<Strategy> strategy_;
  std::vector<JournalEvent> events_;
  uint64_t first_id_ = 0, last_seq_ = 0;
};

TEST_F(ReplayTest, RequestsGetTheAnswersOfThen) {
  begin_script({{"start", {{{"until_refused", Json::object()}}}}}, 3);
  const StrategyRun run = replay();
  EXPECT_TRUE(run.started);
  EXPECT_EQ(run.phase, Phase::searcher);
  EXPECT_FALSE(run.finish);
  EXPECT_FALSE(run.result_delivered);
}

TEST_F(ReplayTest, ItGoesOnWhereTheOldStrategyStood) {
  begin("walker", {{"ahead", 3}, {"count", 9}}, 100);
  hand_over(StrategyEvent::Kind::result, 0);
  hand_over(StrategyEvent::Kind::exited, 0);
  const StrategyRun run = replay();
  StrategyEvent next;
  next.kind = StrategyEvent::Kind::exited;
  next.trial = 1;
  Grants same(4, 100), again(4, 100);
  EXPECT_EQ(to_json(run.strategy->handle(next, again)), to_json(strategy_->handle(next, same)));
}

TEST_F(ReplayTest, TrialsOfTheProfilerAreKnown) {
  begin_script({{"start", {{{"try", Json::object()}, {"parent", 4}}}}}, 1, 5);
  EXPECT_TRUE(replay().started) << "trial 4 came before the searcher's first";
}

TEST_F(ReplayTest, WhatTheStrategyLoggedIsNotLoggedAgain) {
  begin_script({{"start", {{{"log", "hello"}}}}}, 0);
  const StrategyRun run = replay();
  log_.forward(observer_);
  EXPECT_THAT(observer_.logs, IsEmpty());
  log_.write(1, "new");
  log_.forward(observer_);
  EXPECT_TRUE(observer_.logged("new"));
}

TEST_F(ReplayTest, AFinishedStrategyIsFinished) {
  begin_script({{"start", {{{"finish", "all tried"}}}}}, 0);
  const StrategyRun run = replay();
  ASSERT_TRUE(run.finish);
  EXPECT_EQ(run.finish->reason, "all tried");
}

TEST_F(ReplayTest, AResultWhoseExitIsStillToComeIsRemembered) {
  begin_script({{"start", {{{"try", Json::object()}}}}}, 1);
  hand_over(StrategyEvent::Kind::result, 0);
  EXPECT_EQ(replay().result_delivered, 0u);
  hand_over(StrategyEvent::Kind::exited, 0);
  EXPECT_FALSE(replay().result_delivered);
}

TEST_F(ReplayTest, AnotherAnswerIsAMismatchThatNamesTheEvent) {
  begin_script({{"start", {{{"try", Json::object()}}}}}, 1);
  change_answer(0);
  const std::string error = error_of([&] { replay(); }, DSAT_INTERNAL);
  EXPECT_THAT(error, AllOf(HasSubstr("replay_mismatch: event " + std::to_string(last_seq_) + " was"), HasSubstr("[]")));
  EXPECT_THAT(error, HasSubstr("--searcher guided`"));
}

TEST_F(ReplayTest, LongAnswersAreShortenedInAMismatch) {
  begin_script({{"start", {{{"try", Json::object()}, {"note", std::string(5000, 'n')}}}}}, 1);
  events_ = journal_->events();
  std::string& then = events_[0].ops_text;
  then.replace(then.rfind('n'), 1, "m");
  const std::string error = error_of([&] { replay(); }, DSAT_INTERNAL);
  EXPECT_LT(error.size(), 900u);
  EXPECT_THAT(error, HasSubstr("nnn... and"));
  EXPECT_THAT(error, HasSubstr(fmt::format("byte {} on)", then.rfind('m') + 1)));
}

TEST_F(ReplayTest, EventsThatTheStateContainsAreNotHandedOver) {
  begin("walker_saving", {{"ahead", 3}, {"count", 9}}, 100);
  hand_over(StrategyEvent::Kind::exited, 0);
  save_state();
  hand_over(StrategyEvent::Kind::exited, 1);
  change_answer(0);
  EXPECT_NO_THROW(replay()) << "nobody asks for the answer to the first event";
  change_answer(2);
  EXPECT_THAT(error_of([&] { replay(); }, DSAT_INTERNAL),
              AllOf(HasSubstr("event " + std::to_string(last_seq_) + " was"), HasSubstr("[]")));
}

TEST_F(ReplayTest, AStateOfAnotherVersionIsNotUsed) {
  begin("walker_saving", {{"ahead", 3}, {"count", 9}}, 100);
  save_state();
  ++plan_.searcher.journalled_state_version;
  change_answer(0);
  EXPECT_THAT(error_of([&] { replay(); }, DSAT_INTERNAL), HasSubstr("replay_mismatch"))
      << "the events count, from the first on";
}

TEST_F(ReplayTest, AStateThatCannotBeRestoredIsAWarningAndAllEventsAreReplayed) {
  begin("scripted_unsound", {{"script", Json{{"start", {{{"try", Json::object()}}}}}.dump()}}, 1);
  save_state();
  EXPECT_TRUE(replay().started);
  EXPECT_TRUE(observer_.logged("events are replayed"));
}

}  // namespace
}  // namespace dsat::host
