// A study taken up again through the whole library, with its lock and its files: what is refused, what a raised limit
// brings, and plugins that have changed since.
#include <unistd.h>

#include <fstream>

#include "host/study/study_fixture.h"

namespace dsat::host {
namespace {

class StudyResumeTest : public StudyTest {
 protected:
  static ResumeOptions resume_options() {
    ResumeOptions options;
    options.launcher = DSAT_LAUNCH;
    options.environment = {"PATH=/bin"};
    return options;
  }
  std::string why_not(const fs::path& dir) {
    const auto study = Study::resume(dir, resume_options());
    EXPECT_FALSE(study.ok());
    if (study.ok()) return "";
    EXPECT_EQ(study.status().code(), Status::Code::invalid);
    return study.status().message();
  }
};

TEST_F(StudyResumeTest, ANamedFolderWithoutAStudyIsRefused) {
  EXPECT_THAT(why_not(dir() / "nowhere"), HasSubstr("holds no study"));
  fs::create_directories(dir() / "empty");
  EXPECT_THAT(why_not(dir() / "empty"), HasSubstr("holds no study"));
}

TEST_F(StudyResumeTest, ALiveStudyIsRefused) {
  const auto live = Study::create(scripted(Json::object()));
  ASSERT_TRUE(live.ok()) << live.status().message();
  EXPECT_THAT(why_not(dir() / "run"), HasSubstr("is live"));
  EXPECT_THAT(why_not(dir() / "run"), HasSubstr("pid " + std::to_string(getpid())));
}

TEST_F(StudyResumeTest, AnOutputDirectoryWithAStudyIsRefused) {
  { ASSERT_TRUE(Study::create(scripted(Json::object())).ok()); }
  const auto second = Study::create(scripted(Json::object()));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Status::Code::invalid);
  EXPECT_THAT(second.status().message(), HasSubstr("holds another study"));
}

TEST_F(StudyResumeTest, AnOutputDirectoryBelowAFileIsRefused) {
  write_text(dir() / "file", "");
  StudyOptions below = scripted(Json::object());
  below.output_dir = dir() / "file" / "run";
  const auto study = Study::create(below);
  ASSERT_FALSE(study.ok());
  EXPECT_EQ(study.status().code(), Status::Code::invalid);
  EXPECT_THAT(study.status().message(), HasSubstr("give another --output-dir"));
}

TEST_F(StudyResumeTest, AFinishedStudyGivesItsResultAgainAndRunsNothing) {
  StudyLog first, second;
  StudyResult result;
  {
    auto study = Study::create(scripted(Json::object()));
    ASSERT_TRUE(study.ok());
    result = study.value()->run(first);
    ASSERT_EQ(result.status, StudyStatus::no_best) << result.reason;
    EXPECT_EQ(study.value()->run(first).status, StudyStatus::failed) << "a study runs once";
  }
  auto again = Study::resume(dir() / "run", resume_options());
  ASSERT_TRUE(again.ok()) << again.status().message();
  const StudyResult stored = again.value()->run(second);
  EXPECT_EQ(stored.status, result.status);
  EXPECT_EQ(stored.reason, result.reason);
  ASSERT_EQ(second.logs.size(), 1u);  // how to take it up again, and nothing else
  EXPECT_THAT(second.logs.front().second, HasSubstr("--max-trials above"));
}

// Its one trial is given two hours, more than the budget has.
TEST_F(StudyResumeTest, ASpentBudgetIsRaisedByABudgetAlone) {
  StudyOptions given = scripted({{"start", {try_micro_batch(1)}}, {"exit 0", {{{"finish", "one is enough"}}}}});
  given.budget = "1gpuh";
  {
    Session session(plan_of(given));
    session.run_new();
    Trial trial = session.trials()[0];
    trial.record.started_at = "2026-01-01T00:00:00.000000Z";
    trial.record.ended_at = "2026-01-01T02:00:00.000000Z";
    session.journal->begin();
    session.journal->put_trial(trial);
    session.journal->put_meta("spent_device_hours", 2.0);
    session.journal->commit();
  }
  const auto first_line = [&](int max_trials, const std::string& budget) {
    ResumeOptions options = resume_options();
    options.max_trials = max_trials;
    options.budget = budget;
    StudyLog log;
    const auto study = Study::resume(dir() / "run", options);
    EXPECT_TRUE(study.ok()) << study.status().message();
    if (study.ok()) study.value()->run(log);
    return log.logs.empty() ? std::string() : log.logs.front().second;
  };
  EXPECT_THAT(first_line(900, ""), HasSubstr("--budget above 2gpuh"));
  EXPECT_THAT(first_line(900, "2gpuh"), HasSubstr("--budget above 2gpuh"));
  {  // as if it had ended during its profile
    const auto journal = Journal::open(dir() / "run", Journal::Mode::open);
    const Json profile = journal->meta("profile").value_or(Json());
    const auto put = [&](const Json& value) {
      journal->begin();
      journal->put_meta("profile", value);
      journal->commit();
    };
    put(nullptr);
    EXPECT_THAT(first_line(900, ""), HasSubstr("--budget above 2gpuh"));
    put(profile);
  }
  EXPECT_THAT(first_line(50, "3gpuh"), Not(HasSubstr("this study has ended")));
  EXPECT_EQ(resumed_plan(dir() / "run").budget, "3gpuh");
}

TEST_F(StudyResumeTest, APluginsProcessGetsMoreTime) {
  { ASSERT_TRUE(Study::create(scripted(Json::object())).ok()); }
  ResumeOptions options = resume_options();
  options.plugin_timeout = std::chrono::minutes(5);
  {
    const auto study = Study::resume(dir() / "run", options);
    ASSERT_TRUE(study.ok()) << study.status().message();
    StudyLog log;
    study.value()->run(log);
  }
  const Plan plan = resumed_plan(dir() / "run");
  EXPECT_EQ(plan.plugin_timeout, std::chrono::minutes(5));
}

TEST_F(StudyResumeTest, APluginFileThatHasChangedRunsOnlyWithTheUsersWord) {
  const fs::path copy = dir() / "libscripted.so";
  fs::copy_file(fixture_plugin("scripted"), copy);
  StudyOptions with_copy = scripted(Json::object());
  with_copy.searcher.plugin = copy.string();
  { ASSERT_TRUE(Study::create(with_copy).ok()); }
  std::ofstream(copy, std::ios::app | std::ios::binary) << "a trailing byte harms no ELF file";
  EXPECT_THAT(why_not(dir() / "run"), HasSubstr("--accept-changed-plugins"));
  EXPECT_THAT(why_not(dir() / "run"), HasSubstr("--searcher " + copy.string()));
  ResumeOptions options = resume_options();
  options.accept_changed_plugins = true;
  EXPECT_TRUE(Study::resume(dir() / "run", options).ok());
  options = resume_options();
  options.searcher = StrategyChoice{copy.string(), Json::object()};
  EXPECT_TRUE(Study::resume(dir() / "run", options).ok());
}

TEST_F(StudyResumeTest, AnotherPluginUnderTheSameNameIsRefused) {
  const fs::path copy = dir() / "libsearcher.so";
  fs::copy_file(fixture_plugin("scripted"), copy);
  StudyOptions with_copy = scripted(Json::object());
  with_copy.searcher.plugin = copy.string();
  { ASSERT_TRUE(Study::create(with_copy).ok()); }
  fs::remove(copy);
  fs::copy_file(fixture_plugin("walker"), copy);
  EXPECT_THAT(why_not(dir() / "run"), HasSubstr("--accept-changed-plugins"));
  ResumeOptions options = resume_options();
  options.accept_changed_plugins = true;
  EXPECT_THAT(Study::resume(dir() / "run", options).status().message(), HasSubstr("is now test.walker"));
  fs::remove(copy);
  EXPECT_THAT(why_not(dir() / "run"), HasSubstr("no such file"));
}

TEST_F(StudyResumeTest, ALauncherThatMayNotBeRunIsRefusedBeforeAnythingIsWritten) {
  StudyOptions given = scripted(Json::object());
  write_text(given.launcher = dir() / "dsat-launch", "without the right to run");
  EXPECT_THAT(Study::create(given).status().message(), HasSubstr("dsat-launch may not be run"));
  EXPECT_FALSE(fs::exists(given.output_dir));
}

}  // namespace
}  // namespace dsat::host
