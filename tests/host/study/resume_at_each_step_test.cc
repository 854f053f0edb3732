// Crash and resume: whatever the moment, the search goes on as if nothing had happened. A study is copied at each of
// its steps, and every copy is resumed and compared.
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The run directory as a crash at one moment leaves it.
struct Snapshot {
  fs::path dir;
  std::vector<Trial> trials;
};

void copy_db(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const char* name : {"dsat.db", "dsat.db-wal"}) {
    if (fs::exists(from / name)) fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing);
  }
}

std::vector<std::string> lines_of(const std::vector<Trial>& trials) {
  std::vector<std::string> lines;
  for (const Trial& trial : trials) {
    const TrialRecord& r = trial.record;
    lines.push_back(std::to_string(r.id) + " " + to_string(r.kind) + " " + r.config.dump() + " " + r.note + " " +
                    (r.outcome ? to_string(*r.outcome) : "open") + " " + r.metrics.dump() + " " +
                    std::to_string(r.parent.value_or(999)) + " " + std::to_string(r.duplicate_of.value_or(999)));
  }
  return lines;
}

TrialEnd walk_answer(const TrialSpec& spec) {
  const int64_t mbs = micro_batch(spec.config);
  if (mbs > 20) return failed(Outcome::out_of_memory, "OOM");
  if (mbs == 13) return failed(Outcome::failed, "unlucky");
  return completed(static_cast<double>(mbs * 10) / (1 + static_cast<double>(mbs % 5)));
}

class ResumeTest : public StudyTest {
 protected:
  StudyOptions walk(const std::string& plugin) {
    StudyOptions walk = options(plugin, {{"ahead", 4}, {"count", 14}});
    walk.max_concurrent_trials = 3;
    walk.profiler.options["script"] =
        Json{{"start", {try_micro_batch(30)}},
             {"exit 0", {try_micro_batch(31)}},
             {"exit 1", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "profiled"}}}}}
            .dump();
    return walk;
  }

  // Runs to the end and keeps what a crash would have left at each step.
  std::vector<Snapshot> run_with_snapshots(Session& session) {
    std::vector<Snapshot> snapshots;
    session.runner.answer = answer_;
    session.runner.before_each_step = [&] {
      const fs::path to = dir() / ("crash-" + std::to_string(snapshots.size()));
      copy_db(session.plan.dir, to);
      snapshots.push_back({to, session.journal->trials()});
    };
    const StudyResult result = session.run_new();
    EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
    return snapshots;
  }

  // Resumes each and compares. `left_behind`: which running trials have a complete result file all the same.
  void resume_each(const std::string& plugin, const std::function<bool(uint64_t)>& left_behind) {
    resume_each(walk(plugin), left_behind, 15);
  }
  void resume_each(const StudyOptions& given, const std::function<bool(uint64_t)>& left_behind, size_t least) {
    Session whole(plan_of(given));
    const std::vector<Snapshot> snapshots = run_with_snapshots(whole);
    ASSERT_GT(snapshots.size(), least);
    const std::vector<std::string> expected = lines_of(whole.trials());
    const std::vector<std::string> expected_events = whole.deliveries();
    for (const Snapshot& snapshot : snapshots) {
      SCOPED_TRACE(snapshot.dir.filename().string());
      Session session(resumed_plan(snapshot.dir));
      session.runner.answer = answer_;
      session.runner.left = [&](const TrialSpec& spec) -> std::optional<TrialEnd> {
        if (left_behind(spec.id)) return answer_(spec);
        return std::nullopt;
      };
      const StudyResult result = session.resume();
      EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
      EXPECT_EQ(lines_of(session.trials()), expected);
      EXPECT_EQ(session.deliveries(), expected_events);
      for (const TrialSpec& spec : session.runner.started) {
        if (spec.id >= snapshot.trials.size()) continue;
        const Trial& then = snapshot.trials[spec.id];
        EXPECT_FALSE(then.record.outcome) << "trial " << spec.id << " had ended and was run again";
        EXPECT_EQ(spec.attempt, then.record.attempt + 1);
        EXPECT_FALSE(then.state == TrialState::running && left_behind(spec.id)) << "its result was there";
      }
      if (HasFailure()) break;
    }
  }

  std::function<TrialEnd(const TrialSpec&)> answer_ = walk_answer;
};

TEST_F(ResumeTest, AfterACrashAtAnyStepTheSearchIsTheSameByReplay) {
  resume_each("walker", [](uint64_t) { return false; });
}

TEST_F(ResumeTest, AfterACrashAtAnyStepTheSearchIsTheSameFromSavedStates) {
  resume_each("walker_saving", [](uint64_t) { return false; });
}

// A stage that always fails is found by trials on both sides of the crash, and refused from then on.
TEST_F(ResumeTest, ACulpritIsTheSameAfterACrashAtAnyStep) {
  const std::vector<std::pair<int, int64_t>> asked{{1, 2}, {2, 1}, {3, 2}, {2, 2}, {2, 3}, {2, 4}, {3, 4}};
  Json script;
  for (size_t i = 0; i < asked.size(); ++i) {
    Json op = try_micro_batch(asked[i].second);
    config::set(op["try"], config::kStageKey, asked[i].first);
    script[i == 0 ? "start" : "exit " + std::to_string(i - 1)] = {op};
  }
  StudyOptions given = scripted(script);
  given.max_concurrent_trials = 1;
  answer_ = [](const TrialSpec& spec) {
    const bool fails = config::zero_stage(spec.config) == 2;
    return fails ? failed(Outcome::failed, "RuntimeError: no stage 2") : completed(100);
  };
  resume_each(
      given, [](uint64_t) { return false; }, 7);
  const std::vector<Trial> trials = Journal::open(plan_of(given).dir, Journal::Mode::read_only)->trials();
  ASSERT_EQ(trials.size(), 7u);
  for (const uint64_t refused : {4, 5}) {
    EXPECT_EQ(trials[refused].record.outcome, Outcome::invalid_config);
    EXPECT_THAT(trials[refused].record.reason, AllOf(HasSubstr("stage 2"), HasSubstr("RuntimeError: no stage 2")));
  }
  EXPECT_EQ(trials[6].record.outcome, Outcome::completed);
}

TEST_F(ResumeTest, ResultsThatRunningTrialsLeftBehindAreTaken) {
  resume_each("walker", [](uint64_t id) { return id % 2 == 0; });
}

// Its host died between the end of the trial and the turn that would have had it run again.
TEST_F(ResumeTest, AFailureThatNoHostJudgedHasItsRestart) {
  const Json script{{"start", {try_micro_batch(1)}}};
  StudyOptions given = options("scripted", {{"script", script.dump()}});
  given.max_restarts = 1;
  Session first(plan_of(given));
  const fs::path crashed = dir() / "crashed";
  first.runner.before_each_step = [&] {
    if (first.runner.started.size() == 1 && !fs::exists(crashed)) copy_db(first.plan.dir, crashed);
  };
  first.run_new();
  copy_db(crashed, dir() / "before");
  const auto unlucky = [](const TrialSpec&) { return failed(Outcome::failed, "an accident"); };
  for (const int attempts : {1, 0}) {  // what is left of the study's restarts
    Session second(resumed_plan(crashed));
    second.runner.left = unlucky;
    second.plan.max_restarts = attempts;
    second.resume();
    EXPECT_EQ(second.runner.started.size(), static_cast<size_t>(attempts));
    EXPECT_EQ(second.trials()[0].record.outcome, attempts == 1 ? Outcome::completed : Outcome::failed);
    second.coordinator.reset();
    second.close_journal();
    fs::remove_all(crashed);
    copy_db(dir() / "before", crashed);
  }
}

TEST_F(ResumeTest, WhatARunCostThatACrashCutOffIsCounted) {
  StudyOptions given = scripted({{"start", {try_micro_batch(1)}}, {"exit 0", {try_micro_batch(2)}}});
  given.budget = "1gpuh";
  given.trial_timeout = std::chrono::hours(3);
  Session first(plan_of(given));
  const fs::path crashed = dir() / "crashed";
  first.runner.held = {0};
  // Its start is in the journal a moment later.
  first.runner.when_all_held = [&] {
    const std::vector<Trial> trials = first.journal->trials();
    if (trials[0].record.started_at.empty()) {
      first.loop.at(Loop::Clock::now() + std::chrono::milliseconds(20), [&] { first.runner.look_again(); });
    } else {
      copy_db(first.plan.dir, crashed);
      first.runner.release();
    }
  };
  first.run_new();
  ASSERT_TRUE(fs::exists(crashed));
  copy_db(crashed, dir() / "copied");
  const auto resumed = [&](const fs::path& folder, std::chrono::hours written_after) {
    Session second(resumed_plan(folder));
    const std::string started_at = second.trials()[0].record.started_at;
    second.runner.written = [&](const TrialSpec&) {
      return format_rfc3339(*parse_rfc3339(started_at) + written_after);
    };
    EXPECT_THAT(second.resume().reason, HasSubstr("the budget is spent"));
    EXPECT_EQ(second.runner.started.size(), 0u);
    return second.journal->meta(kSpentDeviceHours).value_or(0).get<double>();
  };
  EXPECT_NEAR(resumed(crashed, std::chrono::hours(2)), 2, 0.1);
  EXPECT_NEAR(resumed(dir() / "copied", std::chrono::hours(200)), 3, 0.1) << "its files were written again by a copy";
}

TEST_F(ResumeTest, AStartThatACrashCostTheJournalIsTheFolders) {
  Session first(plan_of(scripted({{"start", {try_micro_batch(1)}}})));
  const fs::path crashed = dir() / "crashed";
  first.runner.before_each_step = [&] {
    const std::vector<Trial> trials = first.journal->trials();
    const bool is_lost =
        !trials.empty() && trials[0].state == TrialState::running && trials[0].record.started_at.empty();
    if (is_lost && !fs::exists(crashed)) copy_db(first.plan.dir, crashed);
  };
  first.run_new();
  ASSERT_TRUE(fs::exists(crashed));
  Session second(resumed_plan(crashed));
  second.runner.left = [](const TrialSpec&) {
    TrialEnd end = completed(100);
    end.started_at = "2026-11-01T10:00:00.000Z";
    end.ended_at = "2026-11-01T12:00:00.000Z";
    return end;
  };
  second.resume();
  EXPECT_EQ(second.runner.started.size(), 0u);
  EXPECT_EQ(second.trials()[0].record.started_at, "2026-11-01T10:00:00.000Z");
}

// Runs until the n-th round of the loop, then interrupts.
StudyResult run_and_interrupt(Session& session, int steps) {
  session.runner.answer = walk_answer;
  session.runner.before_each_step = [&session, steps, count = 0]() mutable {
    if (++count == steps) session.request_stop();
  };
  return session.run_new();
}

TEST_F(ResumeTest, AnInterruptedStudyGoesOnFromItsSavedState) {
  Session whole(plan_of(walk("walker_saving")));
  whole.runner.answer = walk_answer;
  whole.run_new();
  StudyOptions again = walk("walker_saving");
  again.output_dir = dir() / "interrupted";
  Session first(plan_of(again));
  ASSERT_EQ(run_and_interrupt(first, 14).status, StudyStatus::interrupted);
  ASSERT_TRUE(first.journal->state(Phase::searcher, 1000)) << "a clean stop saves the state";
  first.coordinator.reset();
  first.close_journal();
  Session second(resumed_plan(first.plan.dir));
  second.runner.answer = walk_answer;
  EXPECT_EQ(second.resume().status, StudyStatus::completed);
  EXPECT_EQ(lines_of(second.trials()), lines_of(whole.trials()));
}

TEST_F(ResumeTest, AnswersUnderTheOldLimitAreComparedUnderIt) {
  StudyOptions given = options("walker_saving", {{"ahead", 3}, {"count", 45}, {"shows-limit", 1}});
  given.max_concurrent_trials = 1;
  given.max_trials = 60;  // a state is kept after 64 events
  Session first(plan_of(given));
  first.runner.answer = walk_answer;
  const fs::path crash = dir() / "crash";
  first.runner.before_each_step = [&] {
    const uint64_t state = first.journal->state(Phase::searcher, 1000).value_or(SavedState()).seq;
    const auto events = first.journal->events();
    if (state > 0 && events.back().seq > state && !fs::exists(crash)) copy_db(first.plan.dir, crash);
  };
  first.run_new();
  ASSERT_TRUE(fs::exists(crash)) << "events follow a state";
  Plan raised = resumed_plan(crash);
  raised.max_trials += 10;
  Session second(raised);
  second.runner.answer = walk_answer;
  EXPECT_EQ(second.resume().status, StudyStatus::completed);
}

TEST_F(ResumeTest, ATrialThatHadItsSecondChanceBeforeTheCrashHasNoThird) {
  const Json script{{"start", {try_micro_batch(1)}}};
  Session first(plan_of(options("scripted", {{"script", script.dump()}})));
  const auto port_taken = [](const TrialSpec&) {
    TrialEnd end = failed(Outcome::failed, "EADDRINUSE");
    end.infrastructure = true;
    return end;
  };
  const fs::path crashed = dir() / "crashed";
  first.runner.answer = port_taken;
  first.runner.before_each_step = [&] {
    // While it runs for the second time.
    if (first.runner.started.size() == 2 && !fs::exists(crashed)) copy_db(first.plan.dir, crashed);
  };
  first.run_new();
  ASSERT_EQ(first.runner.started.size(), 2u);
  Session second(resumed_plan(crashed));
  second.runner.answer = port_taken;
  second.resume();
  EXPECT_EQ(second.runner.started.size(), 1u) << "the attempt that the crash ended, and no further one";
}

TEST_F(ResumeTest, AStateThatCannotBeRestoredIsReplacedByReplay) {
  const Json script{{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 0", {try_micro_batch(3)}}};
  StudyOptions unsound = options("scripted_unsound", {{"script", script.dump()}});
  unsound.max_concurrent_trials = 1;
  Session first(plan_of(unsound));
  ASSERT_EQ(run_and_interrupt(first, 3).status, StudyStatus::interrupted);
  ASSERT_TRUE(first.journal->state(Phase::searcher, 1000));
  first.coordinator.reset();
  first.close_journal();
  Session second(resumed_plan(first.plan.dir));
  EXPECT_EQ(second.resume().status, StudyStatus::completed);
  EXPECT_TRUE(second.observer.logged("this state makes no sense"));
  EXPECT_EQ(second.trials().size(), 3u);
}

TEST_F(ResumeTest, ASearcherThatAnswersDifferentlyIsAReplayMismatchAndEverythingIsKept) {
  Session first(plan_of(walk("walker_clock")));
  ASSERT_EQ(run_and_interrupt(first, 12).status, StudyStatus::interrupted);
  const std::vector<std::string> before = lines_of(first.trials());
  const std::vector<std::string> deliveries = first.deliveries();
  first.coordinator.reset();
  first.close_journal();
  Plan plan = resumed_plan(first.plan.dir);
  plan.max_trials = 500;
  Session second(plan);
  const StudyResult result = second.resume();
  EXPECT_EQ(result.status, StudyStatus::failed);
  EXPECT_THAT(result.reason, HasSubstr("replay_mismatch"));
  EXPECT_THAT(second.runner.started, IsEmpty());
  EXPECT_EQ(lines_of(second.trials()), before);
  EXPECT_EQ(second.deliveries(), deliveries);
}

TEST_F(ResumeTest, ARaisedLimitTakesAFinishedStudyFurther) {
  StudyOptions limited = options("walker", {{"ahead", 3}, {"count", 12}});
  limited.max_trials = 5;
  Session first(plan_of(limited));
  first.runner.answer = walk_answer;
  EXPECT_EQ(first.run_new().status, StudyStatus::completed);
  const size_t ran = first.runner.started.size();
  ASSERT_EQ(ran, 5u);
  const std::vector<std::string> before = lines_of(first.trials());
  first.coordinator.reset();
  first.close_journal();

  Plan raised = resumed_plan(first.plan.dir);
  raised.max_trials = 8;
  Session second(raised);
  second.runner.answer = walk_answer;
  EXPECT_EQ(second.resume().status, StudyStatus::completed);
  EXPECT_EQ(second.runner.started.size(), 3u) << "what was measured is not measured again";
  const std::vector<std::string> after = lines_of(second.trials());
  ASSERT_GE(after.size(), before.size());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  EXPECT_EQ(resumed_plan(first.plan.dir).max_trials, 8) << "the raised limit stays";
}

TEST_F(ResumeTest, AfterEarlyStoppingARaisedLimitSearchesWithAsMuchPatienceAgain) {
  StudyOptions patient = options("walker", {{"ahead", 1}, {"count", 12}});
  patient.max_trials = 20;
  patient.early_stopping = 3;
  Session first(plan_of(patient));
  first.runner.answer = [](const TrialSpec&) { return completed(100); };
  EXPECT_THAT(first.run_new().reason, HasSubstr("early stopping"));
  const size_t ran = first.runner.started.size();
  ASSERT_EQ(ran, 4u);
  first.coordinator.reset();
  first.close_journal();
  Plan raised = resumed_plan(first.plan.dir);
  raised.max_trials = 30;
  Session second(raised);
  second.runner.answer = first.runner.answer;
  EXPECT_THAT(second.resume().reason, HasSubstr("early stopping"));
  // One more had been asked for when the search ended, and counts as an earlier one.
  EXPECT_EQ(second.runner.started.size(), 4u);
}

TEST_F(ResumeTest, ASearcherWithThePlacesOfItsStartIsNamedWhereThereAreMore) {
  StudyOptions few = options("walker", {{"ahead", 3}, {"count", 12}});
  few.max_concurrent_trials = 2;
  Session first(plan_of(few));
  run_and_interrupt(first, 6);
  first.coordinator.reset();
  first.close_journal();
  Plan plan = resumed_plan(first.plan.dir);
  plan.max_concurrent_trials = 8;
  Session second(plan);
  second.runner.answer = walk_answer;
  second.resume();
  EXPECT_TRUE(second.observer.logged("plans for 2 trials at once, as at its start; `dsat-host resume "));
}

TEST_F(ResumeTest, ARefusalAmongRequestsThatRanIsTakenBackAndTheRestIsAnsweredForNothing) {
  Json requests = Json::array();
  for (int i = 1; i <= 6; ++i) requests.push_back(try_micro_batch(i));
  StudyOptions limited = scripted({{"start", requests}});
  limited.max_trials = 3;
  Session first(plan_of(limited));
  first.run_new();
  ASSERT_EQ(first.trials().size(), 3u);
  first.coordinator.reset();
  first.close_journal();
  Plan raised = resumed_plan(first.plan.dir);
  raised.max_trials = 5;
  Session second(raised);
  EXPECT_EQ(second.resume().status, StudyStatus::completed);
  const std::vector<Trial> trials = second.trials();
  ASSERT_EQ(trials.size(), 8u);
  for (uint64_t id = 3; id < 6; ++id) EXPECT_EQ(trials[id].record.duplicate_of, id - 3);
  EXPECT_THAT(second.runner.started_ids(), ElementsAre(6, 7));
}

TEST_F(ResumeTest, TrialsThatOnlyTheFinishHadStoppedRunAfterAll) {
  StudyOptions limited =
      scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 0", {{{"finish", "enough"}}}}});
  limited.max_trials = 2;
  Session first(plan_of(limited));
  first.runner.held = {1};
  first.run_new();
  ASSERT_EQ(first.trials()[1].record.outcome, Outcome::stopped);
  first.coordinator.reset();
  first.close_journal();
  Plan raised = resumed_plan(first.plan.dir);
  raised.max_trials = 9;
  Session second(raised);
  second.resume();
  // The finish comes again, in answer to the same exit: trial 1 is stopped as before, by a decision made now.
  EXPECT_EQ(second.deliveries().back(), "exit 1 stopped");
}

TEST_F(ResumeTest, AResultThatWasDeliveredBeforeItsExitFailedIsNotDeliveredTwice) {
  Session first(plan_of(scripted({{"start", {try_micro_batch(2)}}, {"exit 0", {{{"throw", "lost"}}}}})));
  ASSERT_EQ(first.run_new().status, StudyStatus::failed);
  first.coordinator.reset();
  first.close_journal();
  Session second(resumed_plan(first.plan.dir));
  EXPECT_EQ(second.resume().status, StudyStatus::failed) << "it fails in the same way";
  EXPECT_THAT(second.deliveries(), ElementsAre("start", "result 0"));
}

TEST_F(ResumeTest, ATrialThatWasToBeStoppedDoesNotRunAgain) {
  Session first(plan_of(scripted(
      {{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 0", {{{"stop", 1}}, try_micro_batch(3)}}})));
  first.runner.held = {1};
  fs::path crash = dir() / "crash";
  first.runner.before_each_step = [&] {
    if (first.runner.started.size() == 2 && first.journal->trials().size() == 3) copy_db(first.plan.dir, crash);
  };
  first.run_new();
  ASSERT_TRUE(fs::exists(crash));
  Session second(resumed_plan(crash));
  second.resume();
  EXPECT_EQ(second.trials()[1].record.outcome, Outcome::stopped);
  for (const TrialSpec& spec : second.runner.started) EXPECT_NE(spec.id, 1u);
}

TEST_F(ResumeTest, AFailureOfBeforeTheResumeDoesNotEndWhatWasMended) {
  StudyOptions narrow =
      scripted({{"start", {try_micro_batch(1), try_micro_batch(2), try_micro_batch(3), try_micro_batch(4)}}});
  narrow.max_concurrent_trials = 1;
  Session first(plan_of(narrow));
  first.runner.answer = [](const TrialSpec&) { return failed(Outcome::failed, "NameError: modle"); };
  EXPECT_EQ(first.run_new().status, StudyStatus::no_best);
  first.coordinator.reset();
  first.close_journal();
  const auto mended = [](const TrialSpec&) { return completed(100); };
  Plan raised = resumed_plan(first.plan.dir);
  raised.max_trials += 10;
  Session second(raised);
  const fs::path crash = dir() / "crash";
  second.runner.answer = mended;
  second.runner.before_each_step = [&] {
    if (!fs::exists(crash)) copy_db(first.plan.dir, crash);
  };
  second.resume();
  Session third(resumed_plan(crash));
  third.runner.answer = mended;
  EXPECT_EQ(third.resume().status, StudyStatus::completed);
}

TEST_F(ResumeTest, FailuresInARowAreCountedAcrossACrash) {
  StudyOptions narrow =
      scripted({{"start", {try_micro_batch(1), try_micro_batch(2), try_micro_batch(3), try_micro_batch(4)}}});
  narrow.max_concurrent_trials = 1;
  Session first(plan_of(narrow));
  first.runner.answer = [](const TrialSpec&) { return failed(Outcome::failed, "NameError: modle"); };
  fs::path crash = dir() / "crash";
  first.runner.before_each_step = [&] {
    if (first.runner.started.size() == 2) copy_db(first.plan.dir, crash);
  };
  EXPECT_EQ(first.run_new().status, StudyStatus::no_best);
  Session second(resumed_plan(crash));
  second.runner.answer = first.runner.answer;
  EXPECT_THAT(second.resume().reason, AllOf(HasSubstr("3 trials"), HasSubstr("same way")));
  EXPECT_THAT(second.trials().back().record.attempt, 0u) << "the fourth is not run";
}

}  // namespace
}  // namespace dsat::host
