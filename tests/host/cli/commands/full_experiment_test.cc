#include "commands/full_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "host/cli/terminal/captured.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class FullExperiment : public ::testing::Test {
 protected:
  FullExperiment() { fs::create_directories(dir_); }
  ~FullExperiment() override { fs::remove_all(dir_); }

  ExitStatus run(const std::string& command) {
    std::ofstream(dir_ / "best_cmd.txt") << command << "\n";
    return run_full_experiment(dir_, captured_.console);
  }
  std::string file(const char* name) const {
    std::string text;
    std::getline(std::ifstream(dir_ / name), text, '\0');
    return text;
  }

  const fs::path dir_ = fs::path(::testing::TempDir()) / ("full_experiment_test." + std::to_string(getpid()));
  Captured captured_;
};

TEST_F(FullExperiment, RunsTheCommandAsTheShellReadsIt) {
  EXPECT_EQ(run("printf '%s' 'two words' > '" + (dir_ / "proof").string() + "'"), kBestFound);
  EXPECT_EQ(file("proof"), "two words");
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
