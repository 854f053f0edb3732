// Processes of a trial that lost their dsat-launch: found by mark, by session, by parent; killed and reaped.
#include "local/trial_processes.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/subprocess.h"
#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrialProcessesTest : public TempDirTest {
 protected:
  // A shell with the mark in its environment (or another one); its output has the ids that `script` prints.
  void start(const std::string& script, const std::string& mark) {
    SpawnOptions options;
    options.argv = {"/bin/sh", "-c", script};
    options.environment = {"PATH=/usr/bin:/bin", std::string(kMarkVariable) + "=" + mark};
    options.stdout_file = dir() / "out";
    child_ = Subprocess::spawn(loop_, options, [this](const ExitStatus&) { child_.reset(); });
  }
  pid_t printed_pid() {
    pid_t pid = 0;
    run_until(loop_, [&] {
      pid = std::atoi(read_text(dir() / "out").c_str());
      loop_.at(Loop::Clock::now() + std::chrono::milliseconds(2), [] {});
      return pid > 0;
    });
    return pid;
  }

  const Subreaper subreaper_;
  Loop loop_;
  std::unique_ptr<Subprocess> child_;
  const std::filesystem::path folder_ = dir() / "trials" / "1";
  const std::string mark_ = trial_mark(folder_, 1);
};

TEST_F(TrialProcessesTest, MarksDifferByFolderAndAttempt) {
  EXPECT_NE(trial_mark("/a/trials/1", 1), trial_mark("/a/trials/1", 2));
  EXPECT_NE(trial_mark("/a/trials/1", 1), trial_mark("/b/trials/1", 1));
}

TEST_F(TrialProcessesTest, ADaemonInASessionOfItsOwnIsFoundByItsMark) {
  start("setsid sh -c 'echo $$; exec sleep 1000' & wait", mark_);
  const pid_t daemon = printed_pid();
  child_->signal(SIGKILL);
  run_until(loop_, [&] { return child_ == nullptr; });
  TrialProcesses processes(folder_, 1, 0);
  EXPECT_THAT(processes.alive(), Contains(daemon));
  EXPECT_THAT(TrialProcesses(folder_, 2, 0).alive(), IsEmpty()) << "another attempt's are not its";
  run_until(loop_, [&] {  // it is sh until it has become sleep
    loop_.at(Loop::Clock::now() + std::chrono::milliseconds(2), [] {});
    return read_text("/proc/" + std::to_string(daemon) + "/comm") == "sleep\n";
  });
  EXPECT_THAT(describe_processes({daemon}), HasSubstr("(sleep, state "));
  EXPECT_THAT(processes.end_all(std::chrono::seconds(20)), IsEmpty());
  EXPECT_FALSE(is_alive(daemon));
}

// For a moment of each exec the kernel shows no environment. This one does nothing else: a single reading of each
// environment misses it 17 to 24 times of 100, and only a process that waits in that moment may be missed.
TEST_F(TrialProcessesTest, OneThatBeginsProgramAfterProgramIsHardlyEverMissed) {
  const std::string again = (dir() / "again.sh").string();
  write_text(again, "exec sh \"$0\"\n");
  start("setsid sh -c 'echo $$; exec sh \"$0\"' '" + again + "' & wait", mark_);
  const pid_t daemon = printed_pid();
  child_->signal(SIGKILL);
  run_until(loop_, [&] { return child_ == nullptr; });
  TrialProcesses processes(folder_, 1, 0);
  int missed = 0;
  for (int look = 0; look < 100; ++look) missed += processes.alive() == std::vector<pid_t>{daemon} ? 0 : 1;
  EXPECT_LT(missed, 5);
  EXPECT_THAT(processes.end_all(std::chrono::seconds(20)), IsEmpty());
}

TEST_F(TrialProcessesTest, WithoutAMarkTheSessionAndTheParentTell) {
  start("env -i sh -c 'echo $$; setsid sleep 1000 & wait'", "other");
  const pid_t shell = printed_pid();
  const pid_t session = child_->pid();
  TrialProcesses processes(folder_, 1, session);
  EXPECT_THAT(processes.alive(), Contains(shell));
  EXPECT_THAT(processes.end_all(std::chrono::seconds(20)), IsEmpty());
  run_until(loop_, [&] { return child_ == nullptr; });
  EXPECT_FALSE(is_alive(shell));
}

TEST_F(TrialProcessesTest, AStoppedOneIsKilledToo) {
  start("echo $$; kill -STOP $$", mark_);
  const pid_t stopped = printed_pid();
  EXPECT_THAT(TrialProcesses(folder_, 1, stopped).end_all(std::chrono::seconds(20)), IsEmpty());
  run_until(loop_, [&] { return child_ == nullptr; });
}

// It has left its session, cleared its environment, and lost its parents: its trial killed dsat-launch.
TEST_F(TrialProcessesTest, WhatHidesIsFoundOnceItsLauncherIsDead) {
  start("env -i setsid sh -c 'echo $$; exec sleep 1000' & wait", "other");
  const pid_t hidden = printed_pid();
  TrialProcesses processes(folder_, 1, child_->pid());
  EXPECT_THAT(processes.alive(), Contains(hidden)) << "its parent is known";
  const pid_t of_the_program = fork();
  if (of_the_program == 0) {
    pause();
    _exit(0);
  }
  child_->signal(SIGKILL);
  run_until(loop_, [&] { return child_ == nullptr; });
  EXPECT_THAT(processes.alive(), ElementsAre(hidden)) << "and none of the program's own children";
  EXPECT_THAT(processes.end_all(std::chrono::seconds(20)), IsEmpty());
  EXPECT_FALSE(is_alive(hidden));
  kill(of_the_program, SIGKILL);
  EXPECT_EQ(waitpid(of_the_program, nullptr, 0), of_the_program);
}

TEST_F(TrialProcessesTest, AStudyKnowsThoseOfAllItsTrialsByWhateverPath) {
  start("setsid sh -c 'echo $$; exec sleep 1000' & wait", trial_mark(dir() / "trials" / "12", 3));
  const pid_t daemon = printed_pid();
  EXPECT_THAT(TrialProcesses::of_study(dir() / "tri").alive(), IsEmpty());
  EXPECT_THAT(TrialProcesses::of_study(dir() / "trials").alive(), IsEmpty());
  std::filesystem::create_directory(dir() / "real");
  std::filesystem::create_directory_symlink(dir(), dir() / "real" / "link");
  EXPECT_THAT(TrialProcesses::of_study(dir() / "real" / "link").alive(), Contains(daemon));
  const Reaped reaped = end_processes_of_study(dir(), std::chrono::seconds(20));
  EXPECT_THAT(reaped.are_left, IsEmpty());
  EXPECT_GE(reaped.ended, 1U);
  EXPECT_FALSE(is_alive(daemon));
  run_until(loop_, [&] { return child_ == nullptr; });
}

}  // namespace
}  // namespace dsat::host
