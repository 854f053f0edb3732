// The training that follows a search: its command, its signals, its exit status.
#include "commands/full_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/cli/terminal/captured.h"
#include "support/temp_dir.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class FullExperiment : public ::testing::Test {
 protected:
  ExitStatus run(const std::string& command) {
    write_text(dir_ / "best_cmd.txt", command + "\n");
    return run_full_experiment(dir_, captured_.console);
  }

  const TempDir temp_;
  const fs::path dir_ = temp_.path();
  Captured captured_;
};

TEST_F(FullExperiment, RunsTheCommandAsTheShellReadsIt) {
  EXPECT_EQ(run("printf '%s' 'two words' > '" + (dir_ / "proof").string() + "'"), kBestFound);
  EXPECT_EQ(read_text(dir_ / "proof"), "two words");
}

TEST_F(FullExperiment, ItsFailureIsStatusOneAndSaid) {
  EXPECT_EQ(run("exit 7"), kNoBest);
  EXPECT_THAT(captured_.err(), HasSubstr("dsat-host: the full training ended with status 7; its command is in"));
}

TEST_F(FullExperiment, AKilledTrainingNamesTheSignal) {
  EXPECT_EQ(run("kill -9 $$"), kNoBest);
  EXPECT_THAT(captured_.err(), HasSubstr("ended by signal Killed"));
}

TEST_F(FullExperiment, TheTrainingHasSignalsAsAShellWouldGiveThem) {
  EXPECT_EQ(run("kill -INT $$"), kNoBest);
  EXPECT_THAT(captured_.err(), HasSubstr("ended by signal Interrupt"));
}

TEST_F(FullExperiment, WithoutACommandNothingIsRun) {
  EXPECT_EQ(run_full_experiment(dir_ / "nowhere", captured_.console), kFailed);
  EXPECT_THAT(captured_.err(), HasSubstr("the full training was not run: cannot read its command"));
}

}  // namespace
}  // namespace dsat::cli
