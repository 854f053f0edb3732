// A study in a child process: when it is taken up again, and what is printed of a failure.
#include "commands/restart_on_crash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "dsat/error.h"
#include "host/cli/terminal/captured.h"
#include "support/temp_dir.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class Supervise : public TempDirTest {
 protected:
  Supervise() {
    fs::create_directories(run_);
    write_text(run_ / "dsat.db", "");
  }
  int supervise_with(std::function<int()> begin, std::function<int()> resume, int restarts = 3) {
    const Supervised study{[&](const std::function<void(const fs::path&)>& started) {
                             started(run_);
                             return begin();
                           },
                           [&](const fs::path& dir) { return dir == run_ ? resume() : 99; }};
    return supervise(study, restarts, dir_, captured_.console);
  }
  static int die() { return raise(SIGKILL); }

  const fs::path run_ = dir() / "run";
  fs::path dir_;
  Captured captured_;
};

TEST_F(Supervise, AStudyThatEndsIsNotTakenUpAgain) {
  for (const int status : {kBestFound, kNoBest, kUsage, kInterrupted}) {
    EXPECT_EQ(supervise_with([&] { return status; }, die), status);
  }
  EXPECT_EQ(dir_, run_);
  EXPECT_EQ(captured_.err(), "");
}

TEST_F(Supervise, OneThatDiesOrFailsIsTakenUpWhereItWas) {
  EXPECT_EQ(supervise_with(die, [] { return 0; }), kBestFound);
  EXPECT_THAT(captured_.err(),
              HasSubstr("the search was killed by signal Killed: it is taken up again (restart 1 of 3"));
  EXPECT_EQ(supervise_with([] { return kFailed; }, [] { return kNoBest; }), kNoBest);
  EXPECT_THAT(captured_.err(), HasSubstr("the search failed: it is taken up again"));
}

TEST_F(Supervise, AFailureThatComesBackByItselfIsTold) {
  EXPECT_EQ(supervise_with(die, die), kFailed);  // no trial ended between the two
  EXPECT_THAT(captured_.err(), Not(HasSubstr("restart 2")));
  EXPECT_THAT(captured_.err(), HasSubstr("go on with dsat-host resume " + run_.string()));
}

TEST_F(Supervise, AsManyRestartsAsAllowed) {
  EXPECT_EQ(supervise_with(
                die, [] { return kBestFound; }, 1),
            kBestFound);
  EXPECT_EQ(supervise_with(
                die, [] { return kBestFound; }, 0),
            kFailed);
}

TEST_F(Supervise, OneThatNeverBeganIsNotTakenUp) {
  const Supervised study{[](const auto&) { return die(); }, [](const fs::path&) { return 0; }};
  EXPECT_EQ(supervise(study, 3, dir_, captured_.console), kFailed);
  EXPECT_THAT(captured_.err(), Not(HasSubstr("taken up again")));
}

TEST_F(Supervise, OneWithoutAJournalIsNotTakenUpAndKeepsItsStatus) {
  fs::remove(run_ / "dsat.db");
  EXPECT_EQ(supervise_with([] { return kFailed; }, [] { return kUsage; }), kFailed);
  EXPECT_EQ(captured_.err(), "");
}

TEST_F(Supervise, OfSeveralAttemptsTheLastOnesObjectIsPrinted) {
  captured_.console.reserve_stdout_for_json();
  const auto print = [&](const char* status) { captured_.console.print_json({{"status", status}}); };
  EXPECT_EQ(supervise_with([&] { return print("failed, and this is longer"), kFailed; },
                           [&] { return print("completed"), kBestFound; }),
            kBestFound);
  EXPECT_EQ(captured_.out(), "{\n  \"status\": \"completed\"\n}\n");
}

TEST_F(Supervise, AnErrorInTheChildIsToldOnce) {
  EXPECT_EQ(supervise_with([]() -> int { throw Error("wrong"); }, die), kUsage);
  EXPECT_EQ(captured_.err(), "dsat-host: wrong\n");
}

}  // namespace
}  // namespace dsat::cli
