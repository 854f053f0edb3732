// What the journal holds at any moment: the strategy's states, and turns that are written in groups. SQL asks the
// database behind the journal's back.
#include <sqlite3.h>

#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

class SavingTest : public StudyTest {
 protected:
  Plan walk(int count, const std::string& folder = "run") {
    StudyOptions given = options("walker_saving", {{"ahead", 4}, {"count", count}});
    given.max_trials = 100000;
    given.max_concurrent_trials = 4;
    given.profiler.options["script"] =
        Json{{"start", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "profiled"}}}}}.dump();
    given.output_dir = dir() / folder;
    return plan_of(given);
  }
  // Does something to a database, or asks it for a number, behind the journal's back.
  static int sql(const fs::path& run_dir, const std::string& text) {
    sqlite3* db = nullptr;
    int number = 0;
    EXPECT_EQ(sqlite3_open((run_dir / "dsat.db").c_str(), &db), SQLITE_OK);
    const auto take = [](void* into, int, char** cells, char**) {
      *static_cast<int*>(into) = cells[0] == nullptr ? 0 : std::atoi(cells[0]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), take, &number, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
    return number;
  }
  static int states(const Session& session) {
    return sql(session.plan.dir, "SELECT count(*) FROM states WHERE phase = 'searcher'");
  }
  static std::vector<std::string> lines_of(const Session& session) {
    std::vector<std::string> lines;
    for (const Trial& trial : session.trials()) {
      const TrialRecord& r = trial.record;
      lines.push_back(std::to_string(r.id) + " " + r.config.dump() + " " + r.note + " " + r.metrics.dump());
    }
    return lines;
  }
};

// walker_saving counts exits: with a state beyond the last one it asks for nothing, as after a restore that restores
// nothing.
TEST_F(SavingTest, ASearcherThatAsksForNothingAfterItsRestoreIsDoubted) {
  for (const int exits : {8, 1000}) {
    Session first(walk(60, "run-" + std::to_string(exits)));
    first.runner.before_each_step = [&] {
      if (first.runner.started.size() == 9 && first.stop_level == 0) first.request_stop();
    };
    ASSERT_EQ(first.run_new().status, StudyStatus::interrupted);
    const Json state{{"hash", 1}, {"exits", exits}, {"best", 0}, {"value", 0.0}};
    first.journal->put_state(Phase::searcher, first.journal->events().back().seq, state.dump());
    first.coordinator.reset();
    first.close_journal();
    Session second(resumed_plan(first.plan.dir));
    const StudyResult result = second.resume();
    const bool idle = exits == 1000;
    EXPECT_EQ(result.reason.find("searcher_idle") != std::string::npos, idle) << result.reason;
    EXPECT_EQ(second.observer.logged("after its saved state was restored it asks for nothing, and "), idle);
    EXPECT_EQ(second.observer.logged("--searcher guided` goes on"), idle);
  }
}

TEST_F(SavingTest, NoMoreThan64EventsLieBeyondTheLastState) {
  Session session(walk(600));
  int most_beyond = 0;
  session.runner.before_each_step = [&] {
    // A searcher that has finished has no more use for a state.
    const char* beyond =
        "SELECT (SELECT max(seq) FROM events) - ifnull((SELECT max(seq) FROM states), 0) "
        "WHERE NOT EXISTS (SELECT 1 FROM events WHERE phase = 'searcher' AND ops LIKE '%\"finish\"%')";
    most_beyond = std::max(most_beyond, sql(session.plan.dir, beyond));
  };
  ASSERT_EQ(session.run_new().status, StudyStatus::completed);
  ASSERT_GT(session.journal->events().size(), 1000u);
  EXPECT_GT(most_beyond, 50);
  EXPECT_LE(most_beyond, 64);
}

// Their number grows with the logarithm of the study's length.
TEST_F(SavingTest, EarlierStatesGiveWayButForThoseFarApart) {
  Session session(walk(1200));
  ASSERT_EQ(session.run_new().status, StudyStatus::completed);
  ASSERT_GT(session.journal->events().size(), 2000u);
  EXPECT_GT(states(session), 10);
  EXPECT_LT(states(session), 35);
}

// A simulated study's turns are written together.
TEST_F(SavingTest, OneGroupIsOneStateAndOneTransaction) {
  Session session(walk(400));
  session.runner.group = std::chrono::hours(1);
  ASSERT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_LE(states(session), 1);
  Session apart(walk(400, "apart"));
  ASSERT_EQ(apart.run_new().status, StudyStatus::completed);
  EXPECT_EQ(lines_of(session), lines_of(apart));
}

TEST_F(SavingTest, AGroupThatCannotBeWrittenLeavesTheStudyAsItWasBefore) {
  Session whole(walk(80, "whole"));
  ASSERT_EQ(whole.run_new().status, StudyStatus::completed);

  const Plan plan = walk(80);
  {
    Session first(plan);
    first.runner.before_each_step = [&first, steps = 0]() mutable {
      if (++steps == 20) first.request_stop();
    };
    ASSERT_EQ(first.run_new().status, StudyStatus::interrupted);
  }
  const int events_before = sql(plan.dir, "SELECT count(*) FROM events");
  sql(plan.dir, "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ROLLBACK, 'no room'); END");
  {
    Session second(resumed_plan(plan.dir));
    second.runner.group = std::chrono::hours(1);
    const StudyResult result = second.resume();
    EXPECT_EQ(result.status, StudyStatus::failed);
    EXPECT_THAT(result.reason, HasSubstr("no room"));
  }
  EXPECT_EQ(sql(plan.dir, "SELECT count(*) FROM events"), events_before);
  sql(plan.dir, "DROP TRIGGER full");

  Session third(resumed_plan(plan.dir));
  EXPECT_EQ(third.resume().status, StudyStatus::completed);
  EXPECT_EQ(lines_of(third), lines_of(whole));
}

}  // namespace
}  // namespace dsat::host
