// Processes of a trial that lost their dsat-launch: found by mark, by session, by parent; killed and reaped.
#include "runner/trial_processes.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/subprocess.h"
#include "host/runner/support.h"

namespace dsat::host {
namespace {

using ::testing::Contains;
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
  const std::string mark_ = trial_mark(dir(), 1);
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
  TrialProcesses processes(mark_, 0);
  EXPECT_THAT(processes.alive(), Contains(daemon));
  EXPECT_THAT(TrialProcesses(trial_mark(dir(), 2), 0).alive(), IsEmpty()) << "another attempt's are not its";
  run_until(loop_, [&] {  // it is sh until it has become sleep
    loop_.at(Loop::Clock::now() + std::chrono::milliseconds(2), [] {});
    return read_text("/proc/" + std::to_string(daemon) + "/comm") == "sleep\n";
  });
  EXPECT_THAT(describe_processes({daemon}), HasSubstr("(sleep, state "));
  EXPECT_THAT(processes.end_all(std::chrono::seconds(20)), IsEmpty());
  EXPECT_FALSE(is_alive(daemon));
}

TEST_F(TrialProcessesTest, WithoutAMarkTheSessionAndTheParentTell) {
  start("env -i sh -c 'echo $$; setsid sleep 1000 & wait'", "other");
  const pid_t shell = printed_pid();
  const pid_t session = child_->pid();
  TrialProcesses processes(mark_, session);
  EXPECT_THAT(processes.alive(), Contains(shell));
  EXPECT_THAT(processes.end_all(std::chrono::seconds(20)), IsEmpty());
  run_until(loop_, [&] { return child_ == nullptr; });
  EXPECT_FALSE(is_alive(shell));
}

TEST_F(TrialProcessesTest, AStoppedOneIsKilledToo) {
  start("echo $$; kill -STOP $$", mark_);
  const pid_t stopped = printed_pid();
  EXPECT_THAT(TrialProcesses(mark_, stopped).end_all(std::chrono::seconds(20)), IsEmpty());
  run_until(loop_, [&] { return child_ == nullptr; });
}

}  // namespace
}  // namespace dsat::host
