// Trials behind a command of the user's: here one that runs them on this machine.
#include "prefix/prefix_engine.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "base/subprocess.h"
#include "host/runner/runner_fixture.h"
#include "runner/trial_script.h"

namespace dsat::host {
namespace {

using ::testing::HasSubstr;

class PrefixEngineTest : public RunnerTest {
 protected:
  void make(const std::string& prefix, const std::vector<std::string>& more = {}) {
    std::vector<std::string> argv{
        "python3", "-S", "-E", std::string(DSAT_FIXTURES) + "/protocol_trial.py", "--deepspeed_config", "user.json"};
    argv.insert(argv.end(), more.begin(), more.end());
    TrialRunnerOptions options{{}, {}, {}, dir() / "run", CommandTemplate({argv, {}, {}, dir(), environment_})};
    options.cwd = dir();
    options.environment = environment_;
    for (const char* host : {"alpha", "beta"}) options.slots.slots.push_back({"0", 0, std::nullopt, host});
    options.term_grace = std::chrono::milliseconds(50);
    RemoteEngineOptions remote{launcher_, environment_, options.slots.slots};
    auto engine = std::make_unique<PrefixEngine>(loop_, remote, split_prefix(prefix));
    runner_ = std::make_unique<TrialRunner>(loop_, std::move(options), std::move(engine));
    runner_->on_started = [this](const TrialStart& start) { starts_.push_back(start); };
    runner_->on_ended = [this](const TrialEnd& end) { ends_[end.id] = end; };
  }
};

TEST_F(PrefixEngineTest, RunsATrialThroughThePrefix) {
  make("env ASKED={host} sh -c");
  const TrialEnd end = run(spec(0));
  EXPECT_EQ(end.outcome, Outcome::completed) << end.reason;
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].slots, std::vector<std::string>{"alpha:0"});
}

TEST_F(PrefixEngineTest, ATrialThatIgnoresTermIsKilled) {
  make("sh -c", {"--misbehave", "ignore_term"});
  runner_->start(spec(0));
  wait_for_file(trial_dir(0) / "stdout.log");
  runner_->stop(0, false);
  EXPECT_EQ(wait(0).outcome, Outcome::stopped);
}

// The kernel ends the training alone; its script counts the kernel's kills. A stand-in for cat plays the counter.
TEST_F(PrefixEngineTest, AScriptNotesThatTheKernelKilledForMemory) {
  std::filesystem::create_directory(dir() / "bin");
  write_program(dir() / "bin" / "cat",
                "#!/bin/sh\ncase \"$*\" in *memory.events*) ;; *) exec /bin/cat \"$@\" ;; esac\n"
                "echo x >>'" +
                    (dir() / "kills").string() +
                    "'\n"
                    "echo oom 9\necho oom_kill $(wc -l <'" +
                    (dir() / "kills").string() + "')\n");
  set_variable(environment_, "PATH", (dir() / "bin").string() + ":" + *get_variable(environment_, "PATH"));
  make("sh -c", {"--misbehave", "killed"});
  const TrialEnd end = run(spec(0));
  EXPECT_EQ(end.outcome, Outcome::out_of_memory) << end.reason;
  EXPECT_THAT(end.reason, HasSubstr("by the kernel"));
}

// A shell's start-up file sets the terminal's title, or shows more than a screen of news. The client outlives its
// script, as ssh does.
TEST_F(PrefixEngineTest, WhatIsPrintedBeforeTheScriptHidesNoStart) {
  for (const char* words : {"printf \"\\033]0;me@{host}\\007\"", "head -c 40000 /dev/zero | tr \"\\0\" x"}) {
    starts_.clear();
    ends_.clear();
    make(std::string("sh -c '") + words + "; sh -c \"$0\"; exit $?'", {"--misbehave", "hang"});
    runner_->start(spec(0));
    run_until(loop_, [&] { return !starts_.empty(); });  // by then its time limits are watched
    runner_->stop(0, true);
    wait(0);
  }
}

// More than a pipe holds: a pipe that was closed after so much would kill what prints, and a full one hold it up.
TEST_F(PrefixEngineTest, HoweverMuchIsPrintedBeforeTheScript) {
  for (const char* words : {"head -c 300000 /dev/zero | tr \"\\0\" x", "yes news | head -n 60000"}) {
    ends_.clear();
    make(std::string("sh -c 'set -e; ") + words + "; sh -c \"$0\"'");
    const TrialEnd end = run(spec(0));
    EXPECT_EQ(end.outcome, Outcome::completed) << end.reason;
  }
}

TEST_F(PrefixEngineTest, AHostThatCannotBeReachedIsInfrastructure) {
  make("sh -c 'echo no route to {host} >&2; exit 255'");
  const TrialEnd end = run(spec(0));
  EXPECT_TRUE(end.infrastructure);
  EXPECT_THAT(end.reason, HasSubstr("no route to alpha"));
}

// Its host is a shell of the test's: what runs there goes on when the client ends, as it does behind ssh.
TEST_F(PrefixEngineTest, AScriptWhoseClientBreaksOffIsKilled) {
  SpawnOptions host;
  host.argv = {"/bin/sh", "-c", "mkfifo jobs && while read -r job; do sh -c \"$job\" & done <>jobs"};
  host.environment = environment_;
  host.cwd = dir();
  const auto other = Subprocess::spawn(loop_, host, [](const ExitStatus&) {});
  look_until(loop_, [&] { return std::filesystem::exists(dir() / "jobs"); });
  write_program(dir() / "client",
                "#!/bin/sh\ncase $1 in grep*) exec sh -c \"$1\" ;; esac\necho \"$1\" >jobs\n"
                "until [ -s run/trials/0/stdout.log ]; do sleep 0.01; done\necho 'connection lost' >&2\nexit 255\n");
  make((dir() / "client").string(), {"--misbehave", "ignore_term"});
  const TrialEnd end = run(spec(0));
  EXPECT_TRUE(end.infrastructure);
  EXPECT_THAT(end.reason, HasSubstr("connection lost"));
  const auto note = read_note(trial_dir(0), kStartedFile, 1);
  ASSERT_TRUE(note);
  look_until(loop_, [&] { return !is_alive(note->pid); });
}

TEST_F(PrefixEngineTest, AnOldNoteEndsNobodyElsesProcess) {
  const auto signal_of = [this](const std::string& file) {
    std::filesystem::create_directories(trial_dir(0));
    write_text(trial_dir(0) / kScriptFile, "while :; do sleep 0.01; done\n");
    write_text(dir() / "other.sh", "while :; do sleep 0.01; done\n");
    SpawnOptions options;
    options.argv = {"/bin/sh", file};
    options.environment = environment_;
    std::optional<ExitStatus> ended;
    const auto process = Subprocess::spawn(loop_, options, [&](const ExitStatus& status) { ended = status; });
    look_until(loop_, [&] { return !children_of(process->pid()).empty(); });
    write_text(trial_dir(0) / kStartedFile,
               R"({"attempt": 1, "job": "", "step": "", "host": "alpha", "time": "", "pid": )" +
                   std::to_string(process->pid()) + "}\n");
    Launch launch;
    launch.folder = trial_dir(0);
    launch.slots = {{"0", 0, std::nullopt, "alpha"}};
    {  // the engine's end waits for the commands that it runs
      PrefixEngine engine(loop_, {launcher_, environment_, launch.slots}, split_prefix("sh -c"));
      EXPECT_FALSE(engine.adopt(launch));
    }
    process->signal(SIGTERM);  // it dies of the KILL where that came first
    run_until(loop_, [&] { return ended.has_value(); });
    return ended->signal;
  };
  EXPECT_EQ(signal_of((trial_dir(0) / kScriptFile).string()), SIGKILL);
  EXPECT_EQ(signal_of((dir() / "other.sh").string()), SIGTERM);
}

TEST(SplitPrefix, BlanksAndQuotes) {
  EXPECT_EQ(split_prefix("ssh  -o 'A B' {host}"), (std::vector<std::string>{"ssh", "-o", "A B", "{host}"}));
  EXPECT_THAT(error_of([] { split_prefix("  "); }), HasSubstr("is empty"));
  EXPECT_THAT(error_of([] { split_prefix("ssh 'x"); }), HasSubstr("has no end"));
}

}  // namespace
}  // namespace dsat::host
