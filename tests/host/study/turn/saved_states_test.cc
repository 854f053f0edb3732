// When a state is due, what is saved, and what stays of it. A fixture plugin gives the states, a journal in a folder
// takes them.
#include "study/turn/saved_states.h"

#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

// Answers every request.
class CountedAnswers : public RequestAnswers {
 public:
  std::optional<uint64_t> create_trial(const Op&) override { return next_++; }
  uint64_t next_id() const override { return next_; }

 private:
  uint64_t next_ = 0;
};

class SavedStatesTest : public StudyTest {
 protected:
  SavedStatesTest() : journal_(Journal::create(dir())), log_(loop_) {}

  // A searcher that has started.
  StrategyRun started(const std::string& plugin, const Json& options) {
    const Plan plan = plan_of(this->options(plugin, options));
    StrategyRun run;
    run.phase = Phase::searcher;
    run.strategy = open_strategy(plan, run.phase, log_);
    run.started = true;
    return run;
  }
  StrategyRun saving(const Json& script = Json::object()) {
    return started("scripted_unsound", {{"script", script.dump()}});
  }
  void save_after(SavedStates& states, uint64_t seq, const StrategyRun& run) {
    states.note_event(seq);
    states.save(run);
  }
  bool has_state(uint64_t seq) {
    const std::optional<SavedState> state = journal_->state(Phase::searcher, seq);
    return state && state->seq == seq;
  }

  std::unique_ptr<Journal> journal_;
  Loop loop_;
  PluginLog log_;
  StudyLog observer_;
};

TEST_F(SavedStatesTest, OneIsDueEvery64Events) {
  SavedStates states(*journal_, observer_);
  states.note_event(63);
  EXPECT_FALSE(states.due());
  states.note_event(64);
  EXPECT_TRUE(states.due());
  states.save(StrategyRun());
  EXPECT_FALSE(states.due()) << "a strategy without a state has none to save";
  states.resume_at(1000);
  states.note_event(1063);
  EXPECT_FALSE(states.due());
}

TEST_F(SavedStatesTest, OnlyTheStateOfAStrategyAtWorkIsSaved) {
  SavedStates states(*journal_, observer_);
  StrategyRun run = saving();
  run.started = false;
  save_after(states, 1, run);
  run.started = true;
  run.finish = Op();
  save_after(states, 2, run);
  EXPECT_FALSE(journal_->state(Phase::searcher, 100));
  run.finish.reset();
  save_after(states, 3, run);
  EXPECT_TRUE(has_state(3));
}

TEST_F(SavedStatesTest, EarlierStatesStayWhereTheyLieAnEighthOfAllEventsApart) {
  SavedStates states(*journal_, observer_);
  const StrategyRun run = saving();
  save_after(states, 1000, run);  // 1000 after the start: stays
  save_after(states, 1064, run);
  save_after(states, 1100, run);  // takes the place of 1064
  EXPECT_TRUE(has_state(1000));
  EXPECT_FALSE(has_state(1064));
  EXPECT_TRUE(has_state(1100));
  save_after(states, 1200, run);  // 200 after the last that stayed: stays, in place of 1100
  save_after(states, 1210, run);
  EXPECT_FALSE(has_state(1100));
  EXPECT_TRUE(has_state(1200));
}

TEST_F(SavedStatesTest, AStrategyThatCannotSaveIsAWarning) {
  SavedStates states(*journal_, observer_);
  save_after(states, 5, saving({{"save", "disk of stone"}}));
  EXPECT_TRUE(observer_.logged("disk of stone; a resume"));
  EXPECT_FALSE(journal_->state(Phase::searcher, 100));
}

}  // namespace
}  // namespace dsat::host
