// How studies end: idle, exhausted, interrupted, out of time, and by failures of scripts, plugins and the machine. Each
// test makes one way to end happen in a whole study.
#include <sqlite3.h>

#include "dsat/host/rescue.h"
#include "host/study/study_fixture.h"
#include "support/full_disk.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class EndsTest : public StudyTest {};

TEST_F(EndsTest, ASearcherThatAsksForNothingMoreIsIdle) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(2)}}})));
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::completed);
  EXPECT_THAT(result.reason, HasSubstr("searcher_idle"));
}

TEST_F(EndsTest, ASearcherThatNeverAsksEndsWithoutABest) {
  Session session(plan_of(scripted(Json::object())));
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason, HasSubstr("searcher_idle"));
  EXPECT_THAT(result.reason, HasSubstr("none ran"));
}

TEST_F(EndsTest, AProfilerWithoutAProfileEndsTheStudy) {
  StudyOptions without = scripted({{"start", {try_micro_batch(2)}}});
  without.profiler.options["script"] = Json{{"start", {{{"finish", "bored"}}}}}.dump();
  Session session(plan_of(without));
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason, StartsWith("no_profile"));
  EXPECT_THAT(result.reason, HasSubstr("bored"));
  EXPECT_THAT(session.runner.started, IsEmpty());
}

TEST_F(EndsTest, AThousandFruitlessRequestsInOneEventExhaustTheSpace) {
  Session session(plan_of(
      scripted({{"start", {try_micro_batch(2)}}, {"exit 0", {{{"until_refused", {{config::kMicroBatchKey, 2}}}}}}})));
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::completed);
  EXPECT_THAT(result.reason, StartsWith("space_exhausted"));
  EXPECT_EQ(session.trials().size(), 1001u);
}

TEST_F(EndsTest, AThousandFruitlessRequestsOverManyEventsExhaustTheSpace) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(2)}}, {"exit *", {try_micro_batch(2)}}})));
  const StudyResult result = session.run_new();
  EXPECT_THAT(result.reason, StartsWith("space_exhausted"));
  EXPECT_EQ(session.runner.started.size(), 1u);
}

TEST_F(EndsTest, ThreeFailuresAlikeOverTwoMicroBatchesAreTheScripts) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1)}},
                                    {"exit 0", {try_micro_batch(2)}},
                                    {"exit 1", {try_micro_batch(3)}},
                                    {"exit 2", {try_micro_batch(4)}}})));
  session.runner.answer = [](const TrialSpec&) { return failed(Outcome::failed, "NameError: modle"); };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason, AllOf(StartsWith("3 trials "), EndsWith(": NameError: modle")));
  EXPECT_TRUE(session.observer.logged("Traceback:"));
  EXPECT_EQ(session.runner.started.size(), 3u);
}

// A script that does not report what the search is to improve.
TEST_F(EndsTest, ATrialWithoutTheMetricEndsTheStudyAndNamesWhatItReports) {
  StudyOptions given =
      scripted({{"start", {try_micro_batch(1)}}, {"exit 0", {try_micro_batch(2)}}, {"exit 1", {try_micro_batch(3)}}});
  given.metric = "FLOPS_per_gpu";
  Session session(plan_of(given));
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason, AllOf(HasSubstr("no FLOPS_per_gpu"), HasSubstr("--metric throughput")));
  EXPECT_EQ(session.runner.started.size(), 1u);
}

TEST_F(EndsTest, AFigureThatWasLeftOutOnceMayStillCome) {
  StudyOptions given =
      scripted({{"start", {try_micro_batch(1)}}, {"exit 0", {try_micro_batch(2)}}, {"exit 1", {try_micro_batch(3)}}});
  given.metric = "FLOPS_per_gpu";
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec&) {
    TrialEnd end = completed(100);
    end.left_out = {"FLOPS_per_gpu"};
    return end;
  };
  EXPECT_THAT(session.run_new().reason, HasSubstr("no FLOPS_per_gpu"));
  EXPECT_EQ(session.runner.started.size(), 2u);
}

TEST_F(EndsTest, OneTrialWithTheMetricLeavesTheSearchToItself) {
  StudyOptions given =
      scripted({{"start", {try_micro_batch(1)}}, {"exit 0", {try_micro_batch(2)}}, {"exit 1", {try_micro_batch(3)}}});
  given.metric = "FLOPS_per_gpu";
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    TrialEnd end = completed(100);
    if (spec.id == 0) end.metrics["FLOPS_per_gpu"] = 1e12;
    return end;
  };
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_EQ(session.runner.started.size(), 3u);
}

TEST_F(EndsTest, FailuresAtOneMicroBatchOrWithOtherLastLinesDoNotEndIt) {
  Json at_one = try_micro_batch(2);
  at_one["repeat"] = true;
  Session one(plan_of(scripted({{"start", {at_one, at_one, at_one, at_one}}})));
  one.runner.answer = [](const TrialSpec&) { return failed(Outcome::failed, "NameError: modle"); };
  EXPECT_THAT(one.run_new().reason, HasSubstr("searcher_idle"));

  StudyOptions various = scripted({{"start", {try_micro_batch(1), try_micro_batch(2), try_micro_batch(3)}}});
  various.output_dir = dir() / "various";
  Session other(plan_of(various));
  other.runner.answer = [](const TrialSpec& spec) {
    return failed(Outcome::failed, spec.id == 1 ? "a socket" : "NameError: modle");
  };
  EXPECT_THAT(other.run_new().reason, HasSubstr("searcher_idle"));
}

TEST_F(EndsTest, ACompletedOrOutOfMemoryTrialInBetweenStartsTheCountAgain) {
  Session session(plan_of(scripted(
      {{"start",
        {try_micro_batch(1), try_micro_batch(2), try_micro_batch(3), try_micro_batch(4), try_micro_batch(5)}}})));
  session.runner.answer = [](const TrialSpec& spec) {
    return spec.id == 2 ? failed(Outcome::out_of_memory, "OOM") : failed(Outcome::failed, "NameError: modle");
  };
  EXPECT_THAT(session.run_new().reason, HasSubstr("searcher_idle"));
}

StudyOptions profiling(StudyOptions options) {
  options.profiler.options["script"] =
      Json{{"start", {try_micro_batch(1)}},
           {"exit 0", {try_micro_batch(2)}},
           {"exit 1", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "profiled"}}}}}
          .dump();
  return options;
}

TEST_F(EndsTest, AFailingProfileTrialEndsTheStudyAtOnceWithItsLastLines) {
  Session session(plan_of(profiling(scripted({{"start", {try_micro_batch(4)}}}))));
  session.runner.answer = [](const TrialSpec&) { return failed(Outcome::failed, "SyntaxError"); };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::no_best);
  EXPECT_THAT(result.reason, AllOf(HasSubstr("profile trial"), HasSubstr("SyntaxError")));
  EXPECT_TRUE(session.observer.logged("Traceback:"));
}

// Batch normalisation, for instance: the profiler goes on at the user's own micro batch, and the search stays there.
TEST_F(EndsTest, AModelThatNeedsMoreThanOneSampleIsSearchedFromTheUsersMicroBatchOn) {
  write_text(dir() / "ds_config.json", R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 1}})");
  StudyOptions given = profiling(scripted({{"start", {try_micro_batch(1)}}, {"exit *", {try_micro_batch(4)}}}));
  Session session(plan_of(given));
  session.runner.answer = [](const TrialSpec& spec) {
    return micro_batch(spec.config) < 2 ? failed(Outcome::failed, "more than 1 value") : completed(1);
  };
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_TRUE(session.observer.logged("at 2; --min-micro-batch"));
  const std::vector<Trial> trials = session.trials();
  const auto refused = std::find_if(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.phase == Phase::searcher && trial.record.outcome == Outcome::invalid_config;
  });
  ASSERT_NE(refused, trials.end());
  EXPECT_THAT(refused->record.reason, HasSubstr("smallest allowed, 2"));
  EXPECT_EQ(session.runner.started.size(), 3u);
}

TEST_F(EndsTest, AProfileTrialThatRunsOutOfMemoryDoesNot) {
  Session session(plan_of(profiling(scripted({{"start", {try_micro_batch(4)}}}))));
  session.runner.answer = [](const TrialSpec& spec) {
    return spec.id == 0 ? failed(Outcome::out_of_memory, "OOM") : completed(1);
  };
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
}

TEST_F(EndsTest, TheTimeBudgetStopsWhatRuns) {
  StudyOptions timed = scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}});
  timed.time_budget = std::chrono::milliseconds(1);
  Session session(plan_of(timed));
  session.runner.held = {0, 1};
  const StudyResult result = session.run_new();
  EXPECT_THAT(result.reason, HasSubstr("time budget"));
  EXPECT_EQ(session.runner.stopped.size(), 2u);
}

// Its slots wait for its second run: the runner must know that there will be none.
TEST_F(EndsTest, ATrialThatWaitsForItsSecondRunMayEndWithoutOne) {
  StudyOptions again =
      scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}, {"exit 1", {{{"finish", "enough"}}}}});
  again.max_restarts = 1;
  Session session(plan_of(again));
  session.runner.answer = [&](const TrialSpec& spec) {
    session.runner.capacity = 1 - static_cast<int>(spec.id);  // no room for the second run
    return spec.id == 0 ? failed(Outcome::failed, "ECC error") : completed(100);
  };
  EXPECT_EQ(session.run_new().reason, "enough");
  EXPECT_EQ(session.runner.moved, std::vector<uint64_t>{0});
  EXPECT_EQ(session.runner.dismissed, std::vector<uint64_t>{0});
  EXPECT_EQ(session.trials()[0].record.outcome, Outcome::stopped);
}

TEST_F(EndsTest, AStopRequestStopsGentlyAndKeepsTheTrialsForLater) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}})));
  session.runner.held = {0, 1};
  session.runner.when_all_held = [&] { session.request_stop(); };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::interrupted);
  EXPECT_THAT(session.runner.stopped,
              ElementsAre(std::pair<uint64_t, bool>(0, false), std::pair<uint64_t, bool>(1, false)));
  EXPECT_THAT(session.deliveries(), ElementsAre("start")) << "the searcher has no event of it";
  for (const Trial& trial : session.trials()) EXPECT_FALSE(trial.record.outcome);
}

TEST_F(EndsTest, ASecondStopRequestStopsAtOnce) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1)}}})));
  session.runner.held = {0};
  session.runner.when_all_held = [&] {
    session.request_stop();
    session.request_stop();
  };
  EXPECT_EQ(session.run_new().status, StudyStatus::interrupted);
  ASSERT_FALSE(session.runner.stopped.empty());
  EXPECT_TRUE(session.runner.stopped.back().second);
}

TEST_F(EndsTest, AStopRequestBeforeTheStartRunsNothing) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1)}}})));
  session.request_stop();
  EXPECT_EQ(session.run_new().status, StudyStatus::interrupted);
  EXPECT_THAT(session.runner.started, IsEmpty());
}

// A plugin's failure: nothing of the failed event is kept, what was best stays.
TEST_F(EndsTest, AFailingEventDropsItsOpsAndFailsTheStudy) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(2), try_micro_batch(4)}},
                                    {"exit 0", {try_micro_batch(8), {{"stop", 1}}, {{"throw", "lost my way"}}}}})));
  session.runner.held = {1};
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::failed);
  EXPECT_EQ(result.reason, "plugin scripted: on_trial_exited: lost my way");
  EXPECT_THAT(session.deliveries(), ElementsAre("start", "result 0"));
  EXPECT_EQ(session.trials().size(), 2u) << "the ids of a failed event are given back";
  EXPECT_TRUE(fs::exists(session.plan.dir / "best_ds_config.json"));
  EXPECT_EQ(session.runner.stopped.size(), 1u) << "what runs is stopped";
}

TEST_F(EndsTest, EveryWayToFailInAnEventIsReportedWithItsFunction) {
  const std::vector<std::pair<Json, std::string>> ways = {
      {{{"create", "no licence"}}, "create: no licence"},
      {{{"start", {{{"throw", "no start"}}}}}, "start: no start"},
      {{{"start", {{{"throw_number", 7}}}}}, "start: unknown exception"},
      {{{"start", {try_micro_batch(2)}}, {"result 0", {{{"throw", "bad result"}}}}}, "on_result: bad result"},
      {{{"start", {{{"finish", "done"}}, {{"finish", "again"}}}}}, "start: finish "},
      {{{"start", {{{"stop", 5}}}}}, "start: stop_trial "},
      {{{"start", {{{"finish", "done"}, {"best", 5}}}}}, "start: finish "},
      {{{"start", {{{"raw", "[1, 2]"}, {"must", true}}}}}, "start: create_trial "},
      {{{"start", {{{"raw", "{torn"}, {"must", true}}}}}, "start: create_trial "},
      {{{"start", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}}}}, "start: set_profile "},
  };
  for (size_t i = 0; i < ways.size(); ++i) {
    StudyOptions options = scripted(ways[i].first);
    options.output_dir = dir() / std::to_string(i);
    Session session(plan_of(options));
    const StudyResult result = session.run_new();
    EXPECT_EQ(result.status, StudyStatus::failed) << result.reason;
    EXPECT_THAT(result.reason, HasSubstr("plugin scripted: " + ways[i].second));
  }
}

TEST_F(EndsTest, AnOpThatIsRefusedAndBorneChangesNothing) {
  Session session(plan_of(scripted({{"start", {{{"raw", "[]"}}, try_micro_batch(2)}}})));
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_TRUE(session.observer.logged("create_trial: 3"));
  EXPECT_EQ(session.trials().size(), 1u);
}

TEST_F(EndsTest, AStateThatCannotBeSavedIsAWarningOnly) {
  StudyOptions unsound = options("scripted_unsound",
                                 {{"script", Json{{"start", {try_micro_batch(1)}}, {"save", "disk of stone"}}.dump()}});
  Session session(plan_of(unsound));
  session.runner.held = {0};
  session.runner.when_all_held = [&] { session.request_stop(); };
  EXPECT_EQ(session.run_new().status, StudyStatus::interrupted);
  EXPECT_TRUE(session.observer.logged("disk of stone"));
}

TEST_F(EndsTest, ARunnerThatCannotStartFailsTheStudyAndNothingElseIsStarted) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2), try_micro_batch(3)}}})));
  session.runner.refuse = [](const TrialSpec& spec) {
    return spec.id == 1 ? Status::internal("no processes left") : Status();
  };
  const StudyResult result = session.run_new();
  EXPECT_EQ(result.status, StudyStatus::failed);
  EXPECT_EQ(result.reason, "no processes left");
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0));
}

TEST_F(EndsTest, ARunnerThatCannotStartBeforeItsTurnIsWrittenLeavesASoundJournal) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}})));
  session.runner.group = std::chrono::hours(1);
  session.runner.refuse = [](const TrialSpec& spec) {
    return spec.id == 1 ? Status::internal("the moon is wrong") : Status();
  };
  EXPECT_EQ(session.run_new().status, StudyStatus::failed);
  EXPECT_EQ(session.trials().size(), 2u);
  EXPECT_THAT(check_study(session.plan.dir).value().findings, IsEmpty());
}

void begin_to_read(const Session& session, sqlite3*& reader) {
  if (reader != nullptr) return;
  ASSERT_EQ(sqlite3_open_v2((session.plan.dir / "dsat.db").c_str(), &reader, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_exec(reader, "BEGIN; SELECT * FROM trials", nullptr, nullptr, nullptr);
}

TEST_F(EndsTest, AFullDiskFailsTheStudyAndNothingUnwrittenIsActedUpon) {
  Session session(
      plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(4)}}, {"exit 0", {try_micro_batch(2)}}})));
  session.runner.held = {1};
  std::optional<FullDisk> full;
  session.runner.before_each_step = [&] {
    if (!full) full.emplace(fs::file_size(session.plan.dir / "dsat.db-wal"));
  };
  const StudyResult result = session.run_new();
  full.reset();
  EXPECT_EQ(result.status, StudyStatus::failed);
  EXPECT_THAT(result.reason, HasSubstr("free space"));
  EXPECT_THAT(session.runner.started_ids(), ElementsAre(0, 1));
  EXPECT_THAT(session.runner.stopped, ElementsAre(std::pair<uint64_t, bool>(1, false))) << "what ran is stopped";
  EXPECT_THAT(session.deliveries(), ElementsAre("start")) << "the turn is written whole or not at all";
  EXPECT_EQ(session.trials().size(), 2u);
  session.coordinator.reset();
  session.close_journal();

  // With space again the study goes on, and trial 0 is not lost.
  Session later(resumed_plan(session.plan.dir));
  later.runner.left = [](const TrialSpec&) { return completed(50); };
  const StudyResult resumed = later.resume();
  EXPECT_EQ(resumed.status, StudyStatus::completed) << resumed.reason;
  EXPECT_EQ(later.trials().size(), 3u);
}

TEST_F(EndsTest, AReaderOfTheJournalDoesNotFailTheStudyAtItsEnd) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1)}}})));
  sqlite3* reader = nullptr;
  session.runner.before_each_step = [&] { begin_to_read(session, reader); };
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_TRUE(session.observer.logged("nothing is lost"));
  EXPECT_FALSE(session.observer.logged("locked"));
  sqlite3_close(reader);
}

TEST_F(EndsTest, AReaderThatEndsWhenTheJournalIsClosedIsNotInItsWay) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1)}}})));
  sqlite3* reader = nullptr;
  session.runner.before_each_step = [&] { begin_to_read(session, reader); };
  session.observer.when_closing = [&] { sqlite3_close(reader); };
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_FALSE(session.observer.logged("another program reads it"));
  EXPECT_FALSE(fs::exists(session.plan.dir / "dsat.db-wal"));
}

}  // namespace
}  // namespace dsat::host
