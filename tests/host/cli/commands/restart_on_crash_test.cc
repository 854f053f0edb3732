// A study in a child process: when it is taken up again, and what is printed of a failure.
#include "commands/restart_on_crash.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "dsat/error.h"
#include "host/cli/terminal/captured.h"
#include "support/temp_dir.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class Supervise : public TempDirTest {
 protected:
  Supervise() {
    signal(SIGINT, SIG_DFL);  // a job in the background has it ignored
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
  EXPECT_THAT(captured_.err(), AllOf(HasSubstr("signal Killed"), HasSubstr("1 of 3")));
  EXPECT_EQ(supervise_with([] { return kFailed; }, [] { return kNoBest; }), kNoBest);
  EXPECT_THAT(captured_.err(), HasSubstr("the search failed"));
}

TEST_F(Supervise, AFailureThatComesBackByItselfIsReported) {
  EXPECT_EQ(supervise_with(die, die), kFailed);  // no trial ended between the two
  EXPECT_THAT(captured_.err(), Not(HasSubstr("restart 2")));
  EXPECT_THAT(captured_.err(), HasSubstr("dsat-host resume " + run_.string()));
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
  EXPECT_THAT(captured_.err(), Not(HasSubstr("restart ")));
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

TEST_F(Supervise, AFullStandardOutputIsNoFailureOfTheSearch) {
  const int full = open("/dev/full", O_WRONLY), nothing = open("/dev/null", O_WRONLY);
  Console console(full, nothing);
  const Supervised study{[&](const auto& started) { return started(run_), console.line("lost"), kBestFound; },
                         [](const fs::path&) { return kNoBest; }};
  EXPECT_EQ(supervise(study, 3, dir_, console), kBestFound);
  EXPECT_EQ(console.finish(kBestFound), kFailed);
  close(full);
  close(nothing);
}

// Ctrl-Z at this program stops the search, then this program, which its shell waits for; what continues the one
// continues the other.
TEST_F(Supervise, ItStopsAndGoesOnWithTheSearch) {
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    const auto until_continued = [] {
      alarm(60);  // a child that nobody continues
      sigset_t continued;
      sigemptyset(&continued);
      sigaddset(&continued, SIGCONT);
      sigprocmask(SIG_BLOCK, &continued, nullptr);
      kill(getppid(), SIGTSTP);
      int signal = 0;
      return sigwait(&continued, &signal), kBestFound;
    };
    _exit(supervise_with(until_continued, die, 0));
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  kill(pid, SIGCONT);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kBestFound);
}

// The message between two attempts waits for room: the search has no process while it does.
TEST_F(Supervise, AnInterruptBetweenTwoAttemptsIsNotLost) {
  int errors[2], news[2];
  ASSERT_EQ(pipe2(errors, O_NONBLOCK), 0);
  ASSERT_EQ(pipe(news), 0);
  while (write(errors[1], "x", 1) == 1) {
  }
  const pid_t pid = fork();
  if (pid == 0) {
    Console console(errors[1], errors[1]);
    const auto fail = [&](const auto& started) {
      started(run_);
      const pid_t self = getpid();
      return write(news[1], &self, sizeof self) > 0 ? kFailed : kBestFound;
    };
    _exit(supervise({fail, [](const fs::path&) { return kBestFound; }}, 3, dir_, console));
  }
  pid_t first = 0;
  ASSERT_EQ(read(news[0], &first, sizeof first), static_cast<ssize_t>(sizeof first));
  while (kill(first, 0) == 0 || read_text("/proc/" + std::to_string(pid) + "/stat").find(") S ") == std::string::npos)
    std::this_thread::yield();
  kill(pid, SIGINT);
  char part[4096];
  while (read(errors[0], part, sizeof part) > 0) {
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  for (const int* ends : {errors, news}) close(ends[0]), close(ends[1]);
}

TEST_F(Supervise, AnErrorInTheChildIsReportedOnce) {
  EXPECT_EQ(supervise_with([]() -> int { throw Error("wrong"); }, die), kUsage);
  EXPECT_EQ(captured_.err(), "dsat-host: wrong\n");
}

}  // namespace
}  // namespace dsat::cli
