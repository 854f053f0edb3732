// The journal by itself, and what others read of it. Damage is done to the database with SQL and with bytes.
#include <sqlite3.h>
#include <sys/stat.h>

#include "host/study/study_fixture.h"
#include "record/run_lock.h"
#include "support/error_of.h"
#include "support/full_disk.h"
#include "support/other_user.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::Not;

class JournalTest : public StudyTest {
 protected:
  std::unique_ptr<Journal> open() { return Journal::create(dir()); }
  std::unique_ptr<Journal> open(Journal::Mode mode) { return Journal::open(dir(), mode); }
  std::string why_not(Journal::Mode mode) {
    return error_of([&] { Journal::open(dir(), mode); });
  }
  // Does something to the database behind the journal's back.
  void sql(const std::string& text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((dir() / "dsat.db").c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  static Trial some_trial(uint64_t id) {
    Trial trial;
    trial.record.id = id;
    trial.record.parent = 7;
    trial.record.config = {{"b", 1}, {"a", {{"deep", "x"}}}};
    trial.record.overrides = {{"b", 1}};
    trial.record.note = "it's a \"note\"";
    trial.record.outcome = Outcome::timed_out;
    trial.record.metrics = {{"throughput", 0.1}};
    trial.record.peak_bytes = uint64_t{1} << 40;
    trial.record.slots = {"0", "GPU-1"};
    trial.record.attempt = 2;
    trial.record.submitted_at = "2026-01-01T00:00:00.000001Z";
    trial.phase = Phase::profiler;
    trial.state = TrialState::ended;
    trial.model_info = true;
    trial.identity = "i";
    trial.end = failed(Outcome::timed_out, "last");
    trial.end->world_size = 4;
    trial.record.peak_source = "log";
    trial.record.peak_above_bytes = 5;
    trial.record.allocator_retries = 6;
    return trial;
  }
};

TEST_F(JournalTest, GivesBackWhatWasWritten) {
  {
    auto journal = open();
    journal->begin();
    journal->put_trial(some_trial(0));
    StrategyEvent event;
    event.kind = StrategyEvent::Kind::exited;
    event.reason = "because";
    event.peak_above_bytes = 8;
    event.allocator_retries = 9;
    Op op;
    op.overrides = {{"b", 2}};
    op.refused = true;
    EXPECT_EQ(journal->append_event(Phase::searcher, event, {op}), 0u);
    journal->put_state(Phase::searcher, 0, std::string("\0bytes\xff", 7));
    journal->put_meta("key", {{"v", 1}});
    journal->commit();
  }
  auto journal = open(Journal::Mode::open);
  const Trial trial = journal->trials().at(0);
  const Trial expected = some_trial(0);
  EXPECT_EQ(to_json(trial.record), to_json(expected.record));
  EXPECT_EQ(trial.record.config.dump(), expected.record.config.dump()) << "keys keep their order";
  EXPECT_EQ(end_to_json(trial), end_to_json(expected));
  EXPECT_EQ(trial.phase, Phase::profiler);
  EXPECT_EQ(trial.state, TrialState::ended);
  EXPECT_TRUE(trial.model_info);
  const JournalEvent entry = journal->events().at(0);
  EXPECT_EQ(entry.event.reason, "because");
  EXPECT_EQ(entry.event.peak_above_bytes, 8u);
  EXPECT_EQ(entry.event.allocator_retries, 9u);
  EXPECT_TRUE(entry.ops.at(0).refused);
  EXPECT_EQ(journal->state(Phase::searcher, 5)->state, std::string("\0bytes\xff", 7));
  EXPECT_FALSE(journal->state(Phase::profiler, 5));
  EXPECT_EQ(*journal->meta("key"), Json({{"v", 1}}));
  EXPECT_FALSE(journal->meta("other"));
  EXPECT_EQ(journal->append_event(Phase::searcher, {}, {}), 1u) << "numbers go on";
}

TEST_F(JournalTest, ARowWithoutADigestIsBelieved) {
  {
    auto journal = open();
    journal->put_trial(some_trial(0));
    journal->append_event(Phase::searcher, {}, {});
    journal->put_meta("key", Json::object());
  }
  sql("UPDATE trials SET overrides = json_remove(overrides, '$.digest'), note = 'by hand'");
  sql("UPDATE events SET event = json_remove(event, '$.digest'), phase = 'profiler'");
  sql("UPDATE meta SET value = json_remove(value, '$.digest')");
  auto journal = open(Journal::Mode::open);
  EXPECT_EQ(journal->trials().at(0).record.note, "by hand");
  EXPECT_EQ(journal->events().at(0).phase, Phase::profiler);
  EXPECT_EQ(*journal->meta("key"), Json::object());
}

TEST_F(JournalTest, APipeInThePlaceOfAFileIsNotWaitedFor) {
  open();
  for (const char* log : {"dsat.db-journal", "dsat.db-wal"}) {
    ASSERT_EQ(mkfifo((dir() / log).c_str(), 0600), 0);
    for (const auto mode : {Journal::Mode::open, Journal::Mode::read_only, Journal::Mode::damaged}) {
      try {
        Journal::open(dir(), mode)->trials();  // it may be read or refused
      } catch (const Error&) {
      }
    }
    fs::remove(dir() / log);
  }
  fs::remove(dir() / "dsat.db");
  ASSERT_EQ(mkfifo((dir() / "dsat.db").c_str(), 0600), 0);
  EXPECT_THAT(why_not(Journal::Mode::read_only), HasSubstr("is a pipe"));
  EXPECT_THAT(why_not(Journal::Mode::open), HasSubstr("is a pipe"));
}

TEST_F(JournalTest, AFileThatIsLinkedToItsLogsIsNotWritten) {
  open();
  constexpr const char* kLogs[] = {"dsat.db-shm", "dsat.db-wal", "dsat.db-journal"};
  for (const char* log : kLogs) {
    for (const bool is_hard : {true, false}) {
      for (const char* left : kLogs) fs::remove(dir() / left);
      write_text(dir() / "bashrc", "mine");
      is_hard ? fs::create_hard_link(dir() / "bashrc", dir() / log) : fs::create_symlink("bashrc", dir() / log);
      for (const auto mode : {Journal::Mode::open, Journal::Mode::read_only}) {
        try {
          Journal::open(dir(), mode)->trials();
        } catch (const Error&) {
        }
        EXPECT_EQ(read_text(dir() / "bashrc"), "mine") << log;
      }
      fs::remove(dir() / "bashrc");
    }
  }
}

TEST_F(JournalTest, AnotherUsersJournalIsReadButNotWorkedWith) {
  DSAT_NEEDS_OTHER_USER();
  open();
  give_to_other_user(dir() / "dsat.db");
  EXPECT_NO_THROW(open(Journal::Mode::read_only));
  EXPECT_THAT(why_not(Journal::Mode::open), HasSubstr("another user"));
  fs::remove(dir() / "dsat.db");
  open();
  fs::rename(dir() / "dsat.db", dir() / "theirs");
  fs::create_symlink("theirs", dir() / "dsat.db");
  EXPECT_THAT(why_not(Journal::Mode::open), HasSubstr("it is a link"));
}

TEST_F(JournalTest, AFullDiskAtTheStartAdvisesNoResume) {
  std::string refused;
  {
    const FullDisk full(1000);
    refused = error_of([&] { open(); }, DSAT_INTERNAL);
  }
  EXPECT_THAT(refused, AllOf(HasSubstr("free space"), Not(HasSubstr("resume"))));
}

TEST_F(JournalTest, ATurnThatIsRolledBackLeavesNothing) {
  auto journal = open();
  journal->begin();
  journal->append_event(Phase::searcher, {}, {});
  journal->put_trial(some_trial(0));
  journal->rollback();
  EXPECT_TRUE(journal->events().empty());
  EXPECT_TRUE(journal->trials().empty());
  journal->begin();
  EXPECT_EQ(journal->append_event(Phase::searcher, {}, {}), 0u);
  journal->commit();
}

TEST_F(JournalTest, AfterAFailureNothingMoreOfTheTurnIsWritten) {
  auto journal = open();
  sql("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ROLLBACK, 'no room'); END");
  journal->begin();
  journal->put_trial(some_trial(0));
  journal->append_event(Phase::searcher, {}, {});  // SQLite rolls the transaction back by itself
  journal->put_trial(some_trial(0));
  EXPECT_THAT(error_of([&] { journal->commit(); }, DSAT_INTERNAL), HasSubstr("no room"));
  EXPECT_TRUE(journal->trials().empty());
}

TEST_F(JournalTest, RefusesWhatIsNoJournalOfThisSchema) {
  EXPECT_THAT(why_not(Journal::Mode::open), HasSubstr("holds no study"));
  write_text(dir() / "dsat.db", "this is a diary, not a database, and it is longer than a header of SQLite's is long");
  EXPECT_THAT(why_not(Journal::Mode::open), HasSubstr("no journal"));
  EXPECT_THAT(why_not(Journal::Mode::read_only), HasSubstr("no journal"));
  write_text(dir() / "dsat.db", "");
  EXPECT_THAT(why_not(Journal::Mode::open), HasSubstr("no journal"));
  fs::remove(dir() / "dsat.db");
  { open(); }
  EXPECT_THAT(error_of([&] { Journal::create(dir()); }), HasSubstr("holds another study"));
  sql("UPDATE meta SET value = '7' WHERE key = 'schema'");
  EXPECT_THAT(why_not(Journal::Mode::open), AllOf(HasSubstr("journal schema 7"), HasSubstr("reads 1;")));
  EXPECT_THAT(why_not(Journal::Mode::read_only), HasSubstr("journal schema 7"));
}

TEST_F(JournalTest, DamageIsAnErrorAndNeverAShorterStudy) {
  {
    auto journal = open();
    journal->begin();
    for (uint64_t id = 0; id < 3; ++id) journal->put_trial(some_trial(id));
    journal->commit();
  }
  const auto why_unreadable = [this] { return error_of([&] { open(Journal::Mode::open)->trials(); }, DSAT_INTERNAL); };
  sql("UPDATE trials SET end = (SELECT end FROM trials WHERE id = 2) WHERE id = 1");
  EXPECT_THAT(why_unreadable(), AllOf(HasSubstr("trial 1: "), HasSubstr("another trial")));
  sql("UPDATE trials SET outcome = '', end = json_set(end, '$.id', 1) WHERE id = 1");
  EXPECT_THAT(why_unreadable(), AllOf(HasSubstr("trial 1: "), HasSubstr("no outcome")));
  sql("UPDATE trials SET outcome = 'splendid' WHERE id = 1");
  EXPECT_THAT(why_unreadable(), AllOf(HasSubstr("trial 1: "), HasSubstr("'splendid'")));
  sql("UPDATE trials SET outcome = 'failed', config = '{torn' WHERE id = 1");
  EXPECT_THAT(why_unreadable(), HasSubstr("trial 1: its config"));
  for (const char* no_earlier_one : {"1", "1039977259383"}) {
    sql(std::string("UPDATE trials SET duplicate_of = ") + no_earlier_one + " WHERE id = 1");
    EXPECT_THAT(why_unreadable(), HasSubstr("trial 1: it repeats")) << "whoever reads it looks there";
  }
  sql("DELETE FROM trials WHERE id = 1");
  EXPECT_THAT(why_unreadable(), HasSubstr("trial 1: is missing"));
}

TEST_F(JournalTest, TablesThatAreGoneAreNamed) {
  { open(); }
  for (const char* table : {"trials", "events", "meta"}) sql(std::string("DROP TABLE ") + table);
  EXPECT_THAT(open(Journal::Mode::damaged)->salvage().losses,
              ::testing::ElementsAre("trials: no such table: trials", "events: no such table: events",
                                     "meta: no such table: meta"));
}

TEST_F(JournalTest, APageOfNoiseIsAnError) {
  {
    auto journal = open();
    journal->begin();
    Trial big = some_trial(0);
    for (uint64_t id = 0; id < 200; ++id) {
      big.record.id = id;
      big.record.note = std::string(500, 'n');
      journal->put_trial(big);
    }
    journal->commit();
    journal->checkpoint();
  }
  std::string bytes = read_text(dir() / "dsat.db");
  for (size_t i = bytes.size() / 2; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  write_text(dir() / "dsat.db", bytes);
  EXPECT_THAT(error_of([&] { open(Journal::Mode::open)->trials(); }, DSAT_INTERNAL), HasSubstr("a copy of"));
}

TEST_F(JournalTest, TheLatestStateThatContainsNoLaterEventIsGiven) {
  auto journal = open();
  journal->begin();
  journal->put_state(Phase::searcher, 3, "three");
  journal->put_state(Phase::searcher, 9, "nine");
  EXPECT_EQ(journal->state(Phase::searcher, 8)->state, "three");
  EXPECT_EQ(journal->state(Phase::searcher, 9)->state, "nine");
  EXPECT_FALSE(journal->state(Phase::searcher, 2));
  journal->remove_states(Phase::searcher);
  EXPECT_FALSE(journal->state(Phase::searcher, 9));
  journal->commit();
}

class ReadStudyTest : public StudyTest {};

TEST_F(ReadStudyTest, AFinishedStudyIsOneFileAndReadsTheSameFromReadOnlyMedia) {
  StudyOptions odd = scripted({{"start", {try_micro_batch(2)}}});
  odd.output_dir = dir() / "100% of #1?";
  Session session(plan_of(odd));
  session.run_new();
  session.coordinator.reset();
  session.journal.reset();
  EXPECT_FALSE(fs::exists(session.plan.dir / "dsat.db-wal"));
  const Result<StudyRecord> record = read_study(session.plan.dir);
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->status, StudyStatus::completed);
  EXPECT_EQ(record->trials.size(), 1u);
  EXPECT_EQ(record->started(), 1);
  ASSERT_TRUE(record->best);
  EXPECT_EQ(record->best->trial, 0u);
  EXPECT_EQ(record->study["metric"], "throughput");
}

// A file in WAL mode whose companions cannot be made: a folder may be read-only even to root, /proc-like.
TEST_F(ReadStudyTest, AJournalInWalModeIsReadWhereNothingCanBeWritten) {
  StudyOptions odd = scripted({{"start", {try_micro_batch(2)}}});
  odd.output_dir = dir() / "a #1? 50%";
  const fs::path run = odd.output_dir;
  Session session(plan_of(odd));
  session.run_new();
  session.coordinator.reset();
  session.journal.reset();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((run / "dsat.db").c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  fs::create_symlink("nowhere", run / "dsat.db-shm");  // in the way of the shared memory that WAL mode wants
  const Result<StudyRecord> record = read_study(run);
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->trials.size(), 1u);
  write_text(run / "dsat.db-wal", "trials that the file does not have");
  EXPECT_THAT(read_study(run).status().message(), HasSubstr("copy the folder"));
}

TEST_F(ReadStudyTest, ALiveStudyIsReadAsRunningWithWhatItHas) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1), try_micro_batch(2)}}})));
  fs::create_directories(session.plan.dir);
  const RunLock lock = RunLock::take(session.plan.dir);
  std::vector<size_t> seen;
  session.runner.before_each_step = [&] {
    const Result<StudyRecord> record = read_study(session.plan.dir);
    ASSERT_TRUE(record.ok()) << record.status().message();
    EXPECT_EQ(record->status, StudyStatus::running);
    seen.push_back(record->trials.size());
  };
  EXPECT_EQ(session.run_new().status, StudyStatus::completed);
  EXPECT_THAT(seen, ::testing::Each(2u));
}

TEST_F(ReadStudyTest, AStudyWhoseHostWasKilledIsInterrupted) {
  Session session(plan_of(scripted({{"start", {try_micro_batch(1)}}})));
  std::vector<StudyStatus> seen;
  session.runner.before_each_step = [&] { seen.push_back(read_study(session.plan.dir)->status); };  // nobody locks it
  session.run_new();
  EXPECT_THAT(seen, ::testing::Each(StudyStatus::interrupted));
  EXPECT_FALSE(seen.empty());
}

TEST_F(ReadStudyTest, AFolderWithoutAJournalAndADamagedBestAreErrors) {
  EXPECT_FALSE(read_study(dir() / "nowhere").ok());
  const auto journal = Journal::create(dir());
  journal->put_meta("best", {{"trial", "zero"}});
  EXPECT_THAT(read_study(dir()).status().message(), HasSubstr("its best configuration"));
}

}  // namespace
}  // namespace dsat::host
