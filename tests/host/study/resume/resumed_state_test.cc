// What a study's journal gives back: states read without a coordinator, from journals that whole studies have written.
#include "study/resume/resumed_state.h"

#include "host/study/study_fixture.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ResumedStateTest : public StudyTest {
 protected:
  // Runs a study until its trial `held` alone is left, and copies its folder then, as if the host had died.
  fs::path crash_of(const Json& script, uint64_t held) {
    Session first(plan_of(scripted(script)));
    const fs::path crash = dir() / "crash";
    first.runner.held = {held};
    first.runner.when_all_held = [&] {
      if (!fs::exists(crash)) fs::copy(first.plan.dir, crash, fs::copy_options::recursive);
      first.request_stop();
    };
    first.run_new();
    return crash;
  }
  StudyState read(const fs::path& run_dir, int max_trials = 0) {
    Plan plan = resumed_plan(run_dir);
    if (max_trials > 0) plan.max_trials = max_trials;
    return read(std::move(plan));
  }
  StudyState read(Plan plan) {
    journal_ = Journal::open(plan.dir, Journal::Mode::open);
    return resumed_state(*journal_, std::move(plan), terms_, log_, observer_, loop_);
  }
  static std::vector<TrialState> states(const StudyState& state) {
    std::vector<TrialState> all;
    for (const Trial& trial : state.trials.all()) all.push_back(trial.state);
    return all;
  }

  Loop loop_;
  PluginLog log_{loop_};
  StudyLog observer_;
  ResumeTerms terms_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(ResumedStateTest, TrialsProfileAndStrategyAreAsTheCrashLeftThem) {
  const fs::path crash = crash_of({{"start", {try_micro_batch(2), try_micro_batch(4)}}}, 1);
  const StudyState state = read(crash);
  EXPECT_THAT(states(state), ElementsAre(TrialState::delivered, TrialState::running));
  EXPECT_THAT(state.trials.running(), ElementsAre(1));
  EXPECT_EQ(state.run.phase, Phase::searcher);
  EXPECT_TRUE(state.run.started);
  EXPECT_TRUE(state.run.strategy);
  EXPECT_FALSE(state.run.finish);
  EXPECT_TRUE(state.profile.is_object());
  EXPECT_FALSE(state.ending);
  EXPECT_EQ(journal_->meta("spent_device_hours"), Json(state.spent_device_hours));
}

TEST_F(ResumedStateTest, AJournalWithoutEventsGivesAStudyThatHasNotBegun) {
  const Plan plan = plan_of(scripted(Json::object()));
  fs::create_directories(plan.dir);
  {
    const auto journal = Journal::create(plan.dir);
    journal->begin();
    journal->put_meta("plan", to_json(plan));
    journal->commit();
  }
  const StudyState state = read(plan.dir);
  EXPECT_EQ(state.trials.size(), 0u);
  EXPECT_EQ(state.run.phase, Phase::profiler);
  EXPECT_FALSE(state.run.started);
  EXPECT_TRUE(journal_->meta("settings")->contains("resumed_at"));
}

TEST_F(ResumedStateTest, ARaisedLimitTakesTheFinishBackAndTheTrialBeforeItIsDeliveredAgain) {
  StudyOptions two = scripted(
      {{"start", {try_micro_batch(2)}}, {"exit 0", {try_micro_batch(4), try_micro_batch(8), {{"finish", "enough"}}}}});
  two.max_trials = 2;
  fs::path run_dir;
  {
    Session first(plan_of(two));
    first.run_new();
    run_dir = first.plan.dir;
  }
  EXPECT_TRUE(read(run_dir).run.finish);
  const size_t events = journal_->events().size();
  journal_.reset();
  const StudyState raised = read(run_dir, 8);
  EXPECT_FALSE(raised.run.finish);
  EXPECT_EQ(raised.trials[0].state, TrialState::ended);
  EXPECT_LT(journal_->events().size(), events);
  EXPECT_EQ(journal_->meta("max_trials"), Json(8));
}

TEST_F(ResumedStateTest, AnotherSearcherFindsWhatHasEndedAndStopsTheRest) {
  const fs::path crash = crash_of({{"start", {try_micro_batch(2), try_micro_batch(4)}}}, 1);
  terms_.another_searcher = true;
  const StudyState state = read(crash);
  EXPECT_FALSE(state.run.started);
  EXPECT_EQ(state.run.phase, Phase::searcher);
  EXPECT_EQ(state.searches.current().first_trial, 2u);
  EXPECT_TRUE(state.trials.is_to_stop(1));
  EXPECT_TRUE(observer_.logged("takes the search"));
}

// The host died after it had written the last failure, and before it wrote that the study ends.
TEST_F(ResumedStateTest, AnEndThatACrashKeptFromBeingWrittenIsStillTheEnd) {
  Session first(plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2), try_micro_batch(3)}}})));
  first.runner.answer = [](const TrialSpec&) { return failed(Outcome::failed, "NameError"); };
  const StudyResult result = first.run_new();
  ASSERT_EQ(result.status, StudyStatus::no_best);
  const fs::path run_dir = first.plan.dir;
  first.journal->begin();
  first.journal->put_meta("ended", nullptr);
  first.journal->commit();
  first.coordinator.reset();
  first.close_journal();
  const StudyState state = read(run_dir);
  ASSERT_TRUE(state.ending);
  EXPECT_EQ(state.ending->status, StudyStatus::no_best);
  EXPECT_THAT(state.ending->reason, HasSubstr("NameError"));
}

TEST_F(ResumedStateTest, APluginThatAnswersOtherwiseLeavesTheJournalAsItWas) {
  const fs::path crash = crash_of({{"start", {try_micro_batch(2), try_micro_batch(4)}}}, 1);
  Plan changed = resumed_plan(crash);
  changed.searcher.options["script"] = Json{{"start", {try_micro_batch(8)}}}.dump();
  EXPECT_THAT(error_of([&] { read(std::move(changed)); }, DSAT_INTERNAL), HasSubstr("replay_mismatch"));
  EXPECT_EQ(journal_->trials().size(), 2u);
  EXPECT_FALSE(journal_->meta("settings")->contains("resumed_at"));
}

}  // namespace
}  // namespace dsat::host
