// Studies whose journal was damaged: what check finds, what a repair keeps, and how they go on. Damage is done to the
// database with SQL and with bytes.
#include "dsat/host/rescue.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "host/study/study_fixture.h"
#include "plan/device_hours.h"
#include "record/plan_copy.h"
#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TrialEnd walk_answer(const TrialSpec& spec) { return completed(static_cast<double>(100 + micro_batch(spec.config))); }

class RescueTest : public StudyTest {
 protected:
  // A study of ten trials in the search, run to its end.
  void SetUp() override {
    StudyOptions walk = options("walker", {{"ahead", 3}, {"count", 10}});
    walk.max_concurrent_trials = 2;
    walk.profiler.options["script"] =
        Json{{"start", {try_micro_batch(30)}},
             {"exit 0", {{{"profile", {{"schema", 1}, {"num_params", 1000}}}}, {{"finish", "profiled"}}}}}
            .dump();
    Session session(plan_of(walk));
    session.runner.answer = walk_answer;
    ASSERT_EQ(session.run_new().status, StudyStatus::completed);
    keep_plan_copy(run_dir(), *session.journal);
    session.journal->checkpoint();
    reference_ = session.trials();
  }
  fs::path run_dir() const { return dir() / "run"; }
  fs::path journal() const { return run_dir() / "dsat.db"; }

  void sql(const std::string& text) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(journal().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  std::vector<std::string> findings() const { return check_study(run_dir()).value().findings; }
  CheckReport repair() const {
    const auto report = repair_study(run_dir());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report.value() : CheckReport();
  }
  std::string why_not_mended() const { return repair_study(run_dir()).status().message(); }

  // Goes on to the end; what ran then.
  std::vector<uint64_t> run_again(const std::function<std::optional<TrialEnd>(const TrialSpec&)>& left = {}) {
    EXPECT_THAT(findings(), IsEmpty());
    Session session(resumed_plan(run_dir()));
    session.runner.answer = walk_answer;
    if (left) session.runner.left = left;
    const StudyResult result = session.resume();
    EXPECT_EQ(result.status, StudyStatus::completed) << result.reason;
    session.close_journal();
    EXPECT_THAT(findings(), IsEmpty());
    return session.runner.started_ids();
  }
  // The measured trials whose result is gone. (Decisions of the walker depend on the trials' numbers, so that after a
  // damage others may follow.)
  std::vector<uint64_t> lost() const {
    const std::vector<Trial> now = Journal::open(run_dir(), Journal::Mode::read_only)->trials();
    std::vector<uint64_t> missing;
    for (const Trial& before : reference_) {
      if (before.record.outcome != Outcome::completed) continue;
      const bool is_there = std::any_of(now.begin(), now.end(), [&](const Trial& trial) {
        return trial.identity == before.identity && trial.record.metrics == before.record.metrics;
      });
      if (!is_there) missing.push_back(before.id());
    }
    return missing;
  }

  std::vector<Trial> reference_;
};

TEST_F(RescueTest, ASoundJournalIsLeftAlone) {
  EXPECT_THAT(findings(), IsEmpty());
  EXPECT_TRUE(repair().sound());
  EXPECT_THAT(repair_study(dir() / "none").status().message(), HasSubstr("holds no study"));
  EXPECT_FALSE(fs::exists(run_dir() / "dsat.db.damaged-1"));
}

TEST_F(RescueTest, TheBestIsThereWhereItCannotBeWritten) {
  fs::remove(run_dir() / "best_ds_config.json");
  fs::create_directories(run_dir() / "best_ds_config.json" / "in its place");
  const auto output = write_best(run_dir(), {});
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_FALSE(output->best.config.empty());
  EXPECT_THAT(output->why_not_written, HasSubstr("best_ds_config.json"));
}

TEST_F(RescueTest, ATrialThatCannotBeReadIsLostAndRunsAgain) {
  sql("UPDATE trials SET config = '[' WHERE id = 5");
  EXPECT_THAT(findings(), Contains(HasSubstr("trial 5")));
  EXPECT_THAT(repair().mended, Contains("trial 5: lost"));
  EXPECT_TRUE(fs::exists(run_dir() / "dsat.db.damaged-1"));
  run_again();
  EXPECT_THAT(lost(), AnyOf(IsEmpty(), ElementsAre(5)));
}

TEST_F(RescueTest, ATrialThatIsMissingIsLostAndRunsAgain) {
  sql("DELETE FROM trials WHERE id = 3");
  EXPECT_THAT(findings(), Contains("trial 3: is missing"));
  EXPECT_THAT(repair().mended, Contains("trial 3: lost"));
  run_again();
  EXPECT_THAT(lost(), AnyOf(IsEmpty(), ElementsAre(3)));
}

TEST_F(RescueTest, AnIdThatIsFarFromAllOthersIsDamageAndNoGap) {
  sql("UPDATE trials SET id = 200000 WHERE id = 9");
  EXPECT_LT(repair().mended.size(), 20u);
  ASSERT_LT(Journal::open(run_dir(), Journal::Mode::read_only)->trials().size(), 20u);
  run_again();
  EXPECT_THAT(lost(), AnyOf(IsEmpty(), ElementsAre(9)));
}

TEST_F(RescueTest, EventsAfterDamageAreTakenBackAndTrialsStay) {
  sql("UPDATE events SET ops = '{}' WHERE seq = 9");
  EXPECT_THAT(findings(), Contains(HasSubstr("event 9")));
  EXPECT_THAT(repair().mended, Contains(AllOf(HasSubstr("number 9 "), HasSubstr("taken back"))));
  run_again();
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(RescueTest, LastEventsThatAreLostAreNamedAndTheSearchGoesOn) {
  for (const int first_lost : {8, 11, 14}) {
    SCOPED_TRACE(first_lost);
    sql(fmt::format("DELETE FROM events WHERE seq >= {}", first_lost));
    EXPECT_THAT(findings(), ElementsAre(HasSubstr("end is lost")));
    EXPECT_THAT(Session(resumed_plan(run_dir())).resume().reason, HasSubstr("end is lost"));
    repair();
    run_again();
    EXPECT_THAT(lost(), IsEmpty());
  }
}

// The search was to learn of its end, and begins again without having asked for it.
TEST_F(RescueTest, AnEndedTrialThatNobodyAsksForAnyMoreIsHistory) {
  sql("UPDATE events SET ops = '{}' WHERE ops LIKE '%\"trial\":8,%'");
  sql("UPDATE trials SET state = 'ended' WHERE id = 8");
  EXPECT_THAT(repair().mended, Contains(HasSubstr("taken back")));
  const std::vector<Trial> trials = Journal::open(run_dir(), Journal::Mode::read_only)->trials();
  ASSERT_GT(trials.size(), 8u);
  EXPECT_EQ(trials[8].record.outcome, Outcome::completed);
  EXPECT_EQ(trials[8].state, TrialState::delivered);
  run_again();
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(RescueTest, RowsThatDoNotFitEachOtherAreTakenBack) {
  sql("UPDATE trials SET state = 'waiting' WHERE id = 4");
  EXPECT_THAT(findings(), Contains(AllOf(StartsWith("trial 4: "), HasSubstr("not over"))));
  repair();
  run_again();
  EXPECT_THAT(lost(), AnyOf(IsEmpty(), ElementsAre(4)));
}

// Text that was changed and still reads: only its digest tells.
TEST_F(RescueTest, AChangedRequestIsTakenBack) {
  sql("UPDATE events SET ops = replace(ops, 'micro_batch_size_per_gpu\":', 'micro_batch_size_per_gpu\":7') WHERE seq = "
      "9");
  EXPECT_THAT(findings(), Contains(StartsWith("event 9: its row")));
  EXPECT_THAT(repair().mended, Contains(AllOf(HasSubstr("number 9 "), HasSubstr("taken back"))));
  run_again();
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(RescueTest, AChangedEventIsTakenBack) {
  sql("UPDATE events SET event = replace(event, '\"max_trials\":', '\"max_trials\":7') "
      "WHERE seq = (SELECT min(seq) FROM events WHERE phase = 'searcher')");
  EXPECT_THAT(findings(), Contains(HasSubstr("row is not")));
  repair();
  run_again();
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(RescueTest, AChangedResultOrConfigurationIsLostAndMeasuredAgain) {
  for (const char* column : {"metrics", "config"}) {
    sql(std::string("UPDATE trials SET ") + column + " = json_set(" + column + ", '$.throughput', 1) WHERE id = 5");
    EXPECT_THAT(findings(), Contains(StartsWith("trial 5: its row")));
    EXPECT_THAT(repair().mended, Contains("trial 5: lost"));
    run_again();
    EXPECT_THAT(lost(), AnyOf(IsEmpty(), ElementsAre(5)));
  }
}

TEST_F(RescueTest, AChangedPlanIsThatOfItsCopy) {
  sql("UPDATE meta SET value = json_set(value, '$.cwd', '/nowhere') WHERE key = 'plan'");
  EXPECT_THAT(findings(), Contains(HasSubstr("plan is not")));
  EXPECT_THAT(repair().mended, Contains(AllOf(StartsWith("meta: plan "), EndsWith("dsat.plan.json"))));
  EXPECT_THAT(run_again(), IsEmpty());
}

TEST_F(RescueTest, WithoutAnEventOfTheSearchItBeginsAgainAndTrialsStay) {
  sql("DELETE FROM events WHERE phase = 'searcher'");
  sql("INSERT INTO events VALUES(99, 'searcher', '{}', '[]')");
  repair();
  run_again();
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(RescueTest, ATableThatCannotBeReadIsTakenBack) {
  std::string bytes = read_text(journal());
  sqlite3* db = nullptr;
  sqlite3_open(journal().c_str(), &db);
  sqlite3_exec(
      db, "SELECT rootpage FROM sqlite_master WHERE name = 'events'",
      [](void* at, int, char** row, char**) {
        static_cast<std::string*>(at)->replace(size_t{4096} * (std::stoul(row[0]) - 1), 4096, 4096, '\0');
        return 0;
      },
      &bytes, nullptr);
  sqlite3_close(db);
  write_text(journal(), bytes);
  EXPECT_THAT(findings(), Contains(HasSubstr("events: ")));
  EXPECT_THAT(repair().findings, Not(IsEmpty()));
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(RescueTest, APlanThatIsLostIsThatOfItsCopy) {
  for (const char* damage : {"DELETE FROM meta WHERE key = 'plan'", "UPDATE meta SET value = '[' WHERE key = 'plan'",
                             "UPDATE meta SET value = '{}' WHERE key = 'plan'"}) {
    sql(damage);
    EXPECT_THAT(findings(), Contains(HasSubstr("plan")));
    EXPECT_THAT(repair().mended, Contains(AllOf(StartsWith("meta: plan "), EndsWith("dsat.plan.json"))));
    EXPECT_THAT(run_again(), IsEmpty());
    EXPECT_THAT(lost(), IsEmpty());
  }
}

TEST_F(RescueTest, ATornRowIsNoRowThatIsAbsent) {
  for (const char* key : {"searches", "max_trials", "restarts", "spent_device_hours"}) {
    sql(std::string("INSERT OR IGNORE INTO meta VALUES ('") + key + "', '1')");
    sql(std::string("UPDATE meta SET value = '[' WHERE key = '") + key + "'");
    const auto journal = Journal::open(run_dir(), Journal::Mode::open);
    EXPECT_THAT(error_of([&] { journal->meta(key); }, DSAT_INTERNAL),
                AllOf(HasSubstr(std::string("its ") + key + " is damaged"), HasSubstr("check DIR --repair")));
    EXPECT_EQ(Journal::open(run_dir(), Journal::Mode::read_only)->meta(key), std::nullopt);
  }
  EXPECT_THAT(repair().mended, Not(IsEmpty()));
  EXPECT_THAT(run_again(), IsEmpty());
}

// The trials that are left do not tell what the runs that were taken back took.
TEST_F(RescueTest, ARepairKeepsWhatWasSpent) {
  sql("UPDATE meta SET value = '12.5' WHERE key = 'spent_device_hours'");
  sql("UPDATE meta SET value = '[' WHERE key = 'restarts'");
  repair();
  EXPECT_EQ(Journal::open(run_dir(), Journal::Mode::read_only)->meta("spent_device_hours"), Json(12.5));
}

TEST_F(RescueTest, ARepairSumsWhatWasSpentWhereTheRowIsLost) {
  sql("UPDATE meta SET value = '[' WHERE key = 'spent_device_hours'");
  repair();
  const auto journal = Journal::open(run_dir(), Journal::Mode::read_only);
  EXPECT_EQ(journal->meta("spent_device_hours"), Json(device_hours(journal->trials())));
}

TEST_F(RescueTest, WithoutACopyALostPlanIsOneLine) {
  fs::remove(run_dir() / kPlanCopyFile);
  sql("DELETE FROM meta WHERE key = 'plan'");
  EXPECT_THAT(why_not_mended(), AllOf(HasSubstr("plan is lost"), HasSubstr("dsat.plan.json is gone")));
  write_text(run_dir() / kPlanCopyFile, "{\"plan\": 7}");
  EXPECT_THAT(why_not_mended(), HasSubstr("cannot be mended"));
  write_text(run_dir() / kPlanCopyFile, "\xff{");
  EXPECT_THAT(why_not_mended(), HasSubstr("cannot be mended"));
}

TEST_F(RescueTest, OtherRowsOfMetaThatCannotBeReadGo) {
  sql("INSERT OR REPLACE INTO meta VALUES('restarts', '{\"a\": []}'), ('infrastructure_reruns', '7'), ('max_trials', "
      "'\"x\"')");
  EXPECT_EQ(findings().size(), 3U);
  repair();
  EXPECT_THAT(run_again(), IsEmpty());
}

TEST_F(RescueTest, AJournalThatCannotBeReadAtAllIsMadeAnewFromThePlanAndTheFolders) {
  for (const std::string& bytes : {std::string(), std::string("SQLite format 3"), std::string(20000, '\0')}) {
    write_text(journal(), bytes);
    EXPECT_THAT(findings(), Not(IsEmpty()));
    repair();
    // What the folders hold: each trial with its number, but for the fourth.
    const auto left = [this](const TrialSpec& spec) -> std::optional<TrialEnd> {
      const bool same = spec.id < reference_.size() && reference_[spec.id].record.config == spec.config;
      if (!same || spec.id == 4) return std::nullopt;
      TrialEnd end = walk_answer(spec);
      end.started_at = "2026-01-01T00:00:00.000001Z";
      return end;
    };
    EXPECT_THAT(run_again(left), ElementsAre(4));
    EXPECT_THAT(lost(), IsEmpty());
  }
}

TEST_F(RescueTest, FoldersAreNotTrustedWithoutARepair) {
  Session session(plan_of([&] {
    StudyOptions walk = options("walker", {{"ahead", 1}, {"count", 3}});
    walk.output_dir = dir() / "other";
    walk.profiler.options["script"] = Json{{"start", {{{"finish", "nothing"}}}}}.dump();
    return walk;
  }()));
  session.runner.left = [](const TrialSpec& spec) {
    TrialEnd end = walk_answer(spec);
    end.started_at = "2026-01-01T00:00:00.000001Z";
    return std::optional<TrialEnd>(end);
  };
  session.run_new();
  EXPECT_EQ(session.runner.started.size(), session.trials().size());
}

TEST_F(RescueTest, AJournalOfALaterVersionIsNotMended) {
  sql("UPDATE meta SET value = '7' WHERE key = 'schema'");
  EXPECT_THAT(why_not_mended(), AllOf(HasSubstr("journal schema 7"), HasSubstr("reads 1;")));
}

TEST_F(RescueTest, ASchemaThatIsNoNumberIsMended) {
  for (const char* value : {"[]", "x", "null", "-1", "1e40"}) {
    sql("UPDATE meta SET value = '" + std::string(value) + "' WHERE key = 'schema'");
    EXPECT_THAT(findings(), Contains(HasSubstr("schema")));
    repair();
    EXPECT_THAT(run_again(), IsEmpty());
  }
}

TEST_F(RescueTest, TheCopyFollowsTheJournalAndIsItsOwnersAlone) {
  const fs::path copy = run_dir() / kPlanCopyFile;
  EXPECT_EQ(fs::status(copy).permissions() & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
  const auto written = fs::last_write_time(copy);
  auto db = Journal::open(run_dir(), Journal::Mode::open);
  keep_plan_copy(run_dir(), *db);
  EXPECT_EQ(fs::last_write_time(copy), written) << "the same again is not written";
  db->begin();
  db->put_meta("max_trials", 77);
  db->commit();
  keep_plan_copy(run_dir(), *db);
  EXPECT_EQ(read_plan_copy(run_dir()).at("max_trials"), 77);
}

}  // namespace
}  // namespace dsat::host
