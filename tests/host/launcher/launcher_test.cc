// dsat-launch as the host uses it: real processes, nothing of them left.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/subprocess.h"
#include "command/command_args.h"
#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DsatLaunch : public TempDirTest {
 protected:
  void start(const Argv& command) {
    SpawnOptions options;
    options.argv = {DSAT_LAUNCH, std::to_string(getpid())};
    options.argv.insert(options.argv.end(), command.begin(), command.end());
    options.environment = {"PATH=/usr/bin:/bin"};
    options.environment.insert(options.environment.end(), variables_.begin(), variables_.end());
    options.cwd = dir();
    options.stdout_file = dir() / "out";
    options.stderr_file = dir() / "err";
    child_ = Subprocess::spawn(loop_, options, [this](const ExitStatus& status) { ended_ = status; });
  }
  void shell(const std::string& script) { start({"/bin/sh", "-c", script}); }
  ExitStatus wait() {
    run_until(loop_, [&] { return ended_.has_value(); });
    return ended_.value_or(ExitStatus{});
  }
  // Until the command has printed `count` process ids.
  std::vector<pid_t> wait_for_pids(size_t count) {
    std::vector<pid_t> pids;
    run_until(loop_, [&] {
      pids.clear();
      std::istringstream in(read_text(dir() / "out"));
      for (pid_t pid = 0; in >> pid;) pids.push_back(pid);
      loop_.at(Loop::Clock::now() + std::chrono::milliseconds(2), [] {});  // look again soon: a file makes no event
      return pids.size() >= count;
    });
    return pids;
  }

  Loop loop_;
  std::vector<std::string> variables_;
  std::unique_ptr<Subprocess> child_;
  std::optional<ExitStatus> ended_;
};

TEST_F(DsatLaunch, WakesAStoppedCommandSoThatItGetsTheTerm) {
  shell("trap 'echo deliveries >> deliveries; exit 7' TERM; echo $$; kill -STOP $$; while :; do sleep 0.01; done");
  const pid_t command = wait_for_pids(1).at(0);
  run_until(loop_, [&] {
    loop_.at(Loop::Clock::now() + std::chrono::milliseconds(2), [] {});
    return read_text("/proc/" + std::to_string(command) + "/stat").find(") T") != std::string::npos;
  });
  child_->signal(SIGTERM);
  EXPECT_EQ(wait().code, 7);
  EXPECT_EQ(read_text(dir() / "deliveries"), "deliveries\n");
}

TEST_F(DsatLaunch, EndsAsItsCommandDoes) {
  shell("exit 42");
  EXPECT_EQ(wait().code, 42);
  ended_.reset();
  shell("kill -SEGV $$");
  EXPECT_EQ(wait().signal, SIGSEGV);
  ended_.reset();
  shell("kill -KILL $$");
  EXPECT_EQ(wait().signal, SIGKILL);
}

// Seen only where the system writes cores into the working directory.
TEST_F(DsatLaunch, DumpsNoCoreOfItsOwnWhereItsCommandCrashed) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c",
                  "ulimit -c unlimited; exec " DSAT_LAUNCH " " + std::to_string(getpid()) +
                      " /bin/sh -c 'ulimit -c 0; kill -SEGV $$'"};
  options.cwd = dir();
  child_ = Subprocess::spawn(loop_, options, [this](const ExitStatus& status) { ended_ = status; });
  EXPECT_EQ(wait().signal, SIGSEGV);
  for (const auto& entry : std::filesystem::directory_iterator(dir())) {
    EXPECT_NE(entry.path().filename().string().rfind("core", 0), 0u) << entry.path();
  }
}

TEST_F(DsatLaunch, SaysWhatItCannotRun) {
  start({"no-such-program"});
  EXPECT_EQ(wait().code, 127);
  EXPECT_THAT(read_text(dir() / "err"), AllOf(HasSubstr("'no-such-program'"), HasSubstr("No such file")));
  ended_.reset();
  write_text(dir() / "data", "no program");
  start({"./data"});
  EXPECT_EQ(wait().code, 126);
  EXPECT_THAT(read_text(dir() / "err"), HasSubstr("Permission denied"));
}

TEST_F(DsatLaunch, LeavesNoDescendantInWhateverSession) {
  // A child, a grandchild whose parent is gone, and one in a session of its own, none of which would end by itself.
  shell(
      "sleep 600 & echo $!; (sleep 600 & echo $!); setsid sh -c 'echo $$; trap \"\" TERM; sleep 600' & "
      "while [ $(wc -l < out) -lt 3 ]; do sleep 0.01; done; exit 5");
  EXPECT_EQ(wait().code, 5);
  const std::vector<pid_t> pids = wait_for_pids(3);
  for (const pid_t pid : pids) EXPECT_FALSE(is_alive(pid)) << pid;
}

// DeepSpeed on processors leaves a buffer of 69 MB a rank behind, under a name with the rendezvous port.
class DsatLaunchSharedMemory : public DsatLaunch {
 protected:
  static std::string buffer(const std::string& rest) {
    return "/dev/shm/deepspeed_allreduce_buffer_" + std::to_string(getuid()) + "_127.0.0.1_" + rest;
  }
  // Runs a command that makes these files and is killed.
  void leave(const std::vector<std::string>& files) {
    std::string script = "touch";
    for (const std::string& file : files) script += " " + file;
    shell(script + " && kill -9 $$");
    EXPECT_EQ(wait().signal, SIGKILL);
  }

  const std::string port_ = std::to_string(100000 + getpid());  // no real port, and no other test's
};

TEST_F(DsatLaunchSharedMemory, ATrialLeavesNoBufferOfItsPort) {
  variables_ = {"MASTER_PORT=" + port_, "DSAT_TRIAL_ID=0"};
  const std::vector<std::string> removed{buffer(port_ + "_0"), buffer(port_ + "_12")};
  const std::vector<std::string> kept{buffer(port_ + "0_0"), buffer(port_ + "_0_x"),
                                      buffer("9" + port_.substr(1) + "_0"), buffer(port_ + "_"),
                                      "/dev/shm/dsat_test_127.0.0.1_" + port_ + "_0"};
  std::vector<std::string> all = removed;
  all.insert(all.end(), kept.begin(), kept.end());
  leave(all);
  for (const std::string& file : removed) EXPECT_FALSE(std::filesystem::exists(file)) << file;
  for (const std::string& file : kept) EXPECT_TRUE(std::filesystem::remove(file)) << file;
}

// The launcher of a client that talks to another node inherits the caller's port, on which the caller may train.
TEST_F(DsatLaunchSharedMemory, WhatIsNoTrialRemovesNoBuffer) {
  variables_ = {"MASTER_PORT=" + port_};
  leave({buffer(port_ + "_0")});
  EXPECT_TRUE(std::filesystem::remove(buffer(port_ + "_0")));
}

TEST_F(DsatLaunch, PassesTermOnToTheWholeGroup) {
  // The command ends with the status of its child: 3 where the child got the signal too, 0 where it slept on. The
  // sleeper prints its id from a shell of its own: one that still had its parent's trap would lose the signal.
  shell(
      "sh -c 'trap \"exit 3\" TERM; sh -c \"echo \\$\\$; exec sleep 20\" & echo $$; wait; exit 0' & child=$!; "
      "trap 'wait $child; exit $?' TERM; echo $$; wait");
  wait_for_pids(3);
  child_->signal(SIGTERM);
  EXPECT_EQ(wait().code, 3);
}

TEST_F(DsatLaunch, RanksThatHandleATermOutliveTheirParent) {
  // The parent dies of it. Its child ends by itself when that is gone; in a subshell, $$ is the parent still.
  shell(
      "(trap 'while kill -0 $$ 2>/dev/null; do :; done; echo saved >saved; exit 0' TERM; echo $$; "
      "while :; do sleep 0.01; done) & wait");
  wait_for_pids(1);
  child_->signal(SIGTERM);
  EXPECT_EQ(wait().signal, SIGTERM);
  EXPECT_EQ(read_text(dir() / "saved"), "saved\n");
}

TEST_F(DsatLaunch, KillsAtOnceWhatIgnoresTerm) {
  shell("trap '' TERM; (trap '' TERM; echo $$; sleep 600) & echo $!; wait");
  const std::vector<pid_t> pids = wait_for_pids(2);
  child_->signal(SIGTERM);
  child_->signal(SIGUSR1);
  EXPECT_EQ(wait().signal, SIGKILL);
  for (const pid_t pid : pids) EXPECT_FALSE(is_alive(pid));
}

TEST_F(DsatLaunch, TheTreeDiesWithAHostThatIsKilled) {
  // A host of its own: a shell whose child is the launcher.
  SpawnOptions options;
  options.argv = {
      "/bin/sh", "-c",
      std::string(DSAT_LAUNCH) + " $$ /bin/sh -c 'trap \"\" TERM; setsid sleep 600 & echo $!; echo $$; wait' & wait"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.stdout_file = dir() / "out";
  const auto host = Subprocess::spawn(loop_, options, [this](const ExitStatus& status) { ended_ = status; });
  const std::vector<pid_t> pids = wait_for_pids(2);
  host->signal(SIGKILL);
  wait();
  run_until(loop_, [&] {
    loop_.at(Loop::Clock::now() + std::chrono::milliseconds(2), [] {});
    return !is_alive(pids[0]) && !is_alive(pids[1]);
  });
}

TEST_F(DsatLaunch, RunsNothingWhenItsHostIsGone) {
  SpawnOptions options;
  options.argv = {DSAT_LAUNCH, "1", "/bin/sh", "-c", "touch ran"};
  options.cwd = dir();
  const auto child = Subprocess::spawn(loop_, options, [this](const ExitStatus& status) { ended_ = status; });
  EXPECT_EQ(wait().code, 125);
  EXPECT_FALSE(std::filesystem::exists(dir() / "ran"));
}

}  // namespace
}  // namespace dsat::host
