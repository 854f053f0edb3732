// The folder of a trial: its attempts, copies of the model, progress, exit.json.
#include "runner/trial_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "dsat/config/json.h"
#include "host/runner/support.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using TrialFiles = TempDirTest;

TrialSpec any_trial() {
  TrialSpec result;
  result.id = 3;
  result.config = Json::object();
  return result;
}

TEST_F(TrialFiles, ATrialsFolderIsItsOwnersAlone) {
  prepare_folder(dir(), any_trial());
  EXPECT_EQ(fs::status(trial_folder(dir(), 3)).permissions(), fs::perms::owner_all);
}

TEST_F(TrialFiles, WhatStandsInThePlaceOfATrialsFolderGoes) {
  fs::create_directories(dir() / "trials");
  fs::create_directory(dir() / "elsewhere");
  write_text(trial_folder(dir(), 3), "a file");
  prepare_folder(dir(), any_trial());
  EXPECT_TRUE(fs::is_directory(trial_folder(dir(), 3)));
  fs::remove_all(trial_folder(dir(), 3));
  fs::create_directory_symlink(dir() / "elsewhere", trial_folder(dir(), 3));
  prepare_folder(dir(), any_trial());
  EXPECT_FALSE(fs::is_symlink(trial_folder(dir(), 3)));
  EXPECT_TRUE(fs::exists(dir() / "elsewhere"));
}

TEST_F(TrialFiles, ALookForProgressGoesSixteenLevelsDeep) {
  fs::path folder = dir();
  for (int i = 0; i < 300; ++i) fs::create_directory(folder /= "d");
  const uint64_t before = progress_mark(dir());
  write_text(folder / "too deep", "x");
  EXPECT_EQ(progress_mark(dir()), before);
  write_text(dir() / "d" / "d" / "seen", "x");
  EXPECT_NE(progress_mark(dir()), before);
}

TEST_F(TrialFiles, ANewAttemptFindsNothingOfTheLast) {
  TrialSpec trial = any_trial();
  prepare_folder(dir(), trial);
  const fs::path folder = trial_folder(dir(), 3);
  write_text(folder / kMetricsFile, "stale");
  trial.attempt = 2;
  prepare_folder(dir(), trial);
  EXPECT_FALSE(fs::exists(folder / kMetricsFile));
  EXPECT_EQ(read_text(folder / "attempts" / "1" / kMetricsFile), "stale");
  write_text(folder / kMetricsFile, "second");
  trial.attempt = 3;
  prepare_folder(dir(), trial);
  EXPECT_EQ(read_text(folder / "attempts" / "2" / kMetricsFile), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(TrialFiles, WhatATrialCalledAttemptsMovesWithItsFiles) {
  TrialSpec trial = any_trial();
  prepare_folder(dir(), trial);
  const fs::path folder = trial_folder(dir(), 3);
  write_text(folder / "attempts", "of the trial");
  trial.attempt = 2;
  prepare_folder(dir(), trial);
  EXPECT_EQ(read_text(folder / "attempts" / "1" / "attempts~"), "of the trial");

  fs::create_directory(dir() / "elsewhere");
  fs::rename(folder / "attempts", folder / "old");
  fs::create_directory_symlink(dir() / "elsewhere", folder / "attempts");
  trial.attempt = 3;
  prepare_folder(dir(), trial);
  EXPECT_TRUE(fs::is_directory(folder / "attempts" / "2" / "old"));
  EXPECT_TRUE(fs::is_empty(dir() / "elsewhere"));
}

TEST_F(TrialFiles, APipeInThePlaceOfTheCommandHoldsNobodyUp) {
  TrialSpec trial = any_trial();
  prepare_folder(dir(), trial);
  const fs::path pipe = trial_folder(dir(), 3) / kCommandFile;
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(wait_until_unlocked(trial_folder(dir(), 3)));
  trial.attempt = 2;
  prepare_folder(dir(), trial);
  EXPECT_FALSE(fs::exists(pipe));
}

TEST_F(TrialFiles, AFileInTheWayIsAnError) {
  write_text(dir() / "trials", "");
  EXPECT_THAT(error_of([&] { prepare_folder(dir(), any_trial()); }, DSAT_INTERNAL), HasSubstr("trials"));
}

TEST_F(TrialFiles, ExitFactsComeBack) {
  RunFacts facts;
  facts.id = 3;
  facts.attempt = 2;
  facts.trial_dir = dir();
  facts.exit = {-1, 9};
  facts.timed_out = "late";
  facts.kernel_oom_kills = true;
  facts.ended_at = "2026-01-01T00:00:00.000000Z";
  TrialEnd end;
  end.outcome = Outcome::timed_out;
  write_exit(facts, end);
  TrialSpec trial = any_trial();
  EXPECT_EQ(read_exit(dir(), trial), std::nullopt);  // another attempt's
  trial.attempt = 2;
  const auto back = read_exit(dir(), trial);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->exit.code, -1);
  EXPECT_EQ(back->exit.signal, 9);
  EXPECT_EQ(back->timed_out, "late");
  EXPECT_TRUE(back->kernel_oom_kills);
  EXPECT_FALSE(back->stopped);
  EXPECT_EQ(back->ended_at, facts.ended_at);
  EXPECT_EQ(config::load_file(dir() / kExitFile)["outcome"], "timed_out");
  for (const char* damaged : {"", "{", "[]", "{\"trial\": 3, \"attempt\": 2}"}) {
    write_text(dir() / kExitFile, damaged);
    EXPECT_EQ(read_exit(dir(), trial), std::nullopt) << damaged;
  }
}

TEST_F(TrialFiles, ProgressIsAnyFileThatGrowsOrAppears) {
  write_text(dir() / "out", "a");
  uint64_t mark = progress_mark(dir());
  EXPECT_EQ(progress_mark(dir()), mark);
  write_text(dir() / "out", "ab");
  EXPECT_NE(progress_mark(dir()), mark);
  mark = progress_mark(dir());
  fs::create_directories(dir() / "deep" / "er");
  write_text(dir() / "deep" / "er" / "x", "");
  EXPECT_NE(progress_mark(dir()), mark);
  EXPECT_EQ(progress_mark(dir() / "missing"), progress_mark(dir() / "missing"));
}

TEST_F(TrialFiles, ProgressBesideALargeTreeIsSeen) {
  write_text(dir() / kStdoutFile, "");
  const fs::path large = dir() / kCwdFolder / "data" / "raw";
  fs::create_directories(large);
  for (int i = 0; i < 10000; ++i) fs::create_symlink("nowhere", large / std::to_string(i));
  for (const char* name : {kStdoutFile, kStderrFile}) {
    write_text(dir() / name, "a");
    const uint64_t before = progress_mark(dir());
    write_text(dir() / name, "ab");
    EXPECT_NE(progress_mark(dir()), before) << name;
  }
}

TEST_F(TrialFiles, CopiesTheModelAndItsIncludesButNotTheRuns) {
  const fs::path model = dir() / "model", run = model / "dsat-results" / "x";
  fs::create_directories(model / "pkg");
  fs::create_directories(run / "trials" / "0");
  fs::create_directories(dir() / "shared");
  write_text(model / "train.py", "train");
  write_text(model / "pkg" / "a.py", "a");
  write_text(dir() / "shared" / "b.py", "b");
  write_text(dir() / "c.py", "c");
  fs::create_symlink("train.py", model / "link");
  const fs::path target = run / "trials" / "0" / kCwdFolder;
  copy_into(target, model, {dir() / "shared", dir() / "c.py"}, run);
  EXPECT_EQ(read_text(target / "pkg" / "a.py"), "a");
  EXPECT_EQ(read_text(target / "shared" / "b.py"), "b");
  EXPECT_EQ(read_text(target / "c.py"), "c");
  EXPECT_TRUE(fs::is_symlink(target / "link"));
  EXPECT_FALSE(fs::exists(target / "dsat-results")) << "nor the empty folder that held them";
  EXPECT_THAT(error_of([&] { copy_into(target, dir() / "missing", {}, run); }, DSAT_INTERNAL), HasSubstr("missing"));
}

TEST_F(TrialFiles, ACopyHoldsNoStudyAndItsLinksLeadWhereTheyLed) {
  const fs::path model = dir() / "model", copy = dir() / "run" / "cwd";
  fs::create_directories(model / "data");
  fs::create_directories(model / "results" / "older" / "trials");
  write_text(model / "results" / "older" / "dsat.db", "");
  write_text(dir() / "outside", "outside");
  fs::create_symlink("../../outside", model / "data" / "out");
  fs::create_symlink("../results", model / "data" / "in");
  write_text(dir() / "extra.py", "extra");
  copy_into(copy, model, {dir() / "extra.py"}, dir() / "run");
  EXPECT_FALSE(fs::exists(copy / "results" / "older"));
  EXPECT_EQ(read_text(copy / "data" / "out"), "outside");
  EXPECT_EQ(fs::read_symlink(copy / "data" / "in"), "../results");
  EXPECT_EQ(read_text(copy / "extra.py"), "extra");
}

TEST_F(TrialFiles, WhatVanishesDuringACopyIsLeftOut) {
  const fs::path model = dir() / "model";
  fs::create_directories(model);
  write_text(model / "train.py", "train");
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (int i = 0; !done; ++i) {
      const fs::path file = model / ("part" + std::to_string(i));
      write_text(file, "x");
      fs::remove(file);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const fs::path copy = dir() / "run" / std::to_string(i);
    EXPECT_EQ(error_of([&] { copy_into(copy, model, {}, dir() / "run"); }, DSAT_INTERNAL), "no error");
    EXPECT_EQ(read_text(copy / "train.py"), "train");
  }
  done = true;
  other.join();
}

TEST_F(TrialFiles, ACopyLeavesOutWhatTheModelsDetignoreNames) {
  const fs::path model = dir() / "model", copy = dir() / "run" / "cwd";
  fs::create_directories(model / "data" / "raw");
  fs::create_directories(model / "src" / "empty");
  write_text(model / ".detignore", "/data\n*.pt\n!best.pt\n");
  write_text(model / "data" / "raw" / "x", "");
  for (const char* name : {"last.pt", "best.pt", "src/old.pt", "src/a.py"}) write_text(model / name, "");
  copy_into(copy, model, {}, dir() / "run");
  for (const char* name : {"best.pt", "src/a.py", "src/empty"}) EXPECT_TRUE(fs::exists(copy / name)) << name;
  for (const char* name : {"data", "last.pt", "src/old.pt"}) EXPECT_FALSE(fs::exists(copy / name)) << name;
}

}  // namespace
}  // namespace dsat::host
