// The training that follows a search: its command, its signals, its exit status.
#include "commands/full_experiment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "dsat/base/shell.h"
#include "host/cli/terminal/captured.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class FullExperiment : public ::testing::Test {
 protected:
  ExitCode run(const std::string& command) {
    write_text(dir_ / "best_cmd.txt", command + "\n");
    return run_full_experiment(dir_, {}, captured_.console);
  }

  const TempDir temp_;
  const fs::path dir_ = temp_.path();
  Captured captured_;
};

TEST_F(FullExperiment, RunsTheCommandAsTheShellReadsIt) {
  EXPECT_EQ(run("printf '%s' 'two words' > '" + (dir_ / "proof").string() + "'"), kBestFound);
  EXPECT_EQ(read_text(dir_ / "proof"), "two words");
}

TEST_F(FullExperiment, RunsInTheFolderThatItIsGiven) {
  write_text(dir_ / "best_cmd.txt", "pwd > here\n");
  fs::create_directory(dir_ / "project");
  EXPECT_EQ(run_full_experiment(dir_, dir_ / "project", captured_.console), kBestFound);
  EXPECT_EQ(read_text(dir_ / "project" / "here"), fs::canonical(dir_ / "project").string() + "\n");
  EXPECT_EQ(run_full_experiment(dir_, dir_ / "gone", captured_.console), kFailed);
  EXPECT_THAT(captured_.err(), AllOf(HasSubstr("was not run"), HasSubstr("gone"), HasSubstr("No such file")));
}

TEST_F(FullExperiment, ItsFailureIsStatusOneAndReported) {
  EXPECT_EQ(run("exit 7"), kNoBest);
  EXPECT_THAT(captured_.err(), HasSubstr("status 7"));
}

TEST_F(FullExperiment, AKilledTrainingNamesTheSignal) {
  EXPECT_EQ(run("kill -9 $$"), kNoBest);
  EXPECT_THAT(captured_.err(), HasSubstr("signal Killed"));
}

TEST_F(FullExperiment, TheTrainingHasSignalsAsAShellWouldGiveThem) {
  EXPECT_EQ(run("kill -INT $$"), kNoBest);
  EXPECT_THAT(captured_.err(), HasSubstr("signal Interrupt"));
}

// The training tells this program to end, as whoever runs it would.
TEST_F(FullExperiment, WhatTellsUsToEndIsPassedOnAndTheTrainingIsWaitedFor) {
  for (const char* const signal : {"TERM", "HUP"}) {
    const std::string proof = (dir_ / signal).string();
    const std::string training = fmt::format(
        "trap 'echo saved > {}; exit 3' {}; kill -{} {}; while :; do sleep 0.1; done", proof, signal, signal, getpid());
    // A shell may wait for the training: it runs nothing after it.
    EXPECT_EQ(run(fmt::format("/bin/sh -c {}; touch {}.later", shell_quote(training), proof)), kNoBest);
    EXPECT_EQ(read_text(proof), "saved\n");
    EXPECT_FALSE(fs::exists(proof + ".later"));
  }
  EXPECT_THAT(captured_.err(), AllOf(HasSubstr("status 143"), HasSubstr("status 129")));
}

TEST_F(FullExperiment, AHangupThatIsIgnoredStaysIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(run(fmt::format("kill -HUP {} $$", getpid())), kBestFound);
  std::signal(SIGHUP, before);
}

TEST_F(FullExperiment, WithoutACommandNothingIsRun) {
  EXPECT_EQ(run_full_experiment(dir_ / "nowhere", {}, captured_.console), kFailed);
  EXPECT_THAT(captured_.err(), AllOf(HasSubstr("was not run"), HasSubstr("cannot read")));
}

}  // namespace
}  // namespace dsat::cli
