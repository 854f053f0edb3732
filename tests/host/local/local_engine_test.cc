// Trials as real processes: results, failures, time limits, stops, and nothing that is left running.
#include "local/local_engine.h"

#include <gmock/gmock.h>

#include <set>

#include "dsat/config/json.h"
#include "host/runner/runner_fixture.h"

namespace dsat::host {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using LocalRunnerTest = RunnerTest;

TEST_F(LocalRunnerTest, RunsATrialAndReadsItsMetrics) {
  make_runner({"--world-size", "1"});
  const TrialEnd end = run(spec(0));
  EXPECT_EQ(end.outcome, Outcome::completed) << end.reason;
  EXPECT_DOUBLE_EQ(end.metrics["throughput"].get<double>() * end.metrics["latency"].get<double>(), 8e6);
  EXPECT_GT(end.peak_bytes.value_or(0), 0u);
  EXPECT_EQ(end.device_memory_bytes, 1000000000u);
  EXPECT_EQ(end.world_size, 1);
  EXPECT_EQ(end.exit_code, 0);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_THAT(starts_[0].slots, ElementsAre("0"));
  for (const char* file : {"ds_config.json", "cmd.txt", "stdout.log", "stderr.log", "metrics.json", "exit.json"}) {
    EXPECT_TRUE(std::filesystem::exists(trial_dir(0) / file)) << file;
  }
}

TEST_F(LocalRunnerTest, EqualConfigurationsMeasureAlike) {
  make_runner({});
  EXPECT_EQ(run(spec(0)).metrics, run(spec(1)).metrics);
}

TEST_F(LocalRunnerTest, RunsTheModelInformationRun) {
  make_runner({});
  TrialSpec trial = spec(0);
  trial.model_info = true;
  const TrialEnd end = run(trial);
  EXPECT_EQ(end.outcome, Outcome::completed) << end.reason;
  EXPECT_EQ(end.metrics["num_params"], 25000000);
  EXPECT_TRUE(std::filesystem::exists(trial_dir(0) / "model_info.json"));
}

TEST_F(LocalRunnerTest, TellsTheTrialWhoItIs) {
  adjust = [](TrialRunnerOptions& options) { options.slots.backend = Backend::cuda; };
  make_runner_for(
      {"sh", "-c", "env > $DSAT_TRIAL_DIR/env; pwd >> $DSAT_TRIAL_DIR/env", "--deepspeed_config", "user.json"}, 2, 2);
  run(spec(7));
  const std::string env = read_text(trial_dir(7) / "env");
  EXPECT_THAT(env, HasSubstr("DSAT_TRIAL_ID=7\n"));
  EXPECT_THAT(env, HasSubstr("DSAT_TRIAL_DIR=" + trial_dir(7).string() + "\n"));
  EXPECT_THAT(env, HasSubstr("DSAT_DS_CONFIG=" + trial_dir(7).string() + "/ds_config.json\n"));
  EXPECT_THAT(env, HasSubstr("MASTER_PORT="));
  EXPECT_THAT(env, HasSubstr("CUDA_VISIBLE_DEVICES=0,1\n"));
  EXPECT_THAT(env, Not(HasSubstr("/the/callers/own")));
  EXPECT_THAT(env, HasSubstr(dir().string() + "\n"));
}

TEST_F(LocalRunnerTest, StartsAreReportedFromTheLoopAndBeforeEnds) {
  make_runner_for({"true", "--deepspeed_config", "user.json"});
  std::vector<std::string> order;
  runner_->on_started = [&](const TrialStart&) { order.push_back("start"); };
  runner_->on_ended = [&](const TrialEnd&) { order.push_back("end"); };
  runner_->start(spec(0));
  EXPECT_TRUE(order.empty());
  run_until(loop_, [&] { return order.size() == 2; });
  EXPECT_THAT(order, ElementsAre("start", "end"));
}

TEST_F(LocalRunnerTest, RunsAsManyAsThereAreSlots) {
  max_slots_ = 5;
  make_runner({"--misbehave", "hang"}, 8, 2);
  EXPECT_EQ(room(), 2);
  runner_->start(spec(0));
  runner_->start(spec(1));
  EXPECT_EQ(room(), 0);
  EXPECT_THAT(error_of([&] { runner_->start(spec(2)); }, DSAT_INTERNAL), HasSubstr("free slot"));
  run_until(loop_, [&] { return starts_.size() == 2; });
  EXPECT_THAT(starts_[0].slots, ElementsAre("0", "1"));
  EXPECT_THAT(starts_[1].slots, ElementsAre("2", "3"));
  runner_->stop(0, true);
  wait(0);
  EXPECT_EQ(room(), 1);
}

TEST_F(LocalRunnerTest, LiveTrialsNeverShareAPort) {
  make_runner_for(
      {"sh", "-c", "echo $MASTER_PORT > $DSAT_TRIAL_DIR/port; sleep 600", "--deepspeed_config", "user.json"}, 6);
  std::set<std::string> ports;
  for (uint64_t id = 0; id < 6; ++id) runner_->start(spec(id));
  for (uint64_t id = 0; id < 6; ++id) {
    wait_for_file(trial_dir(id) / "port");
    ports.insert(read_text(trial_dir(id) / "port"));
  }
  EXPECT_EQ(ports.size(), 6u);
}

TEST_F(LocalRunnerTest, MemoryThatRunsOutIsAnOutcomeOfItsOwn) {
  make_runner({"--device-memory", "500000000"});
  EXPECT_EQ(run(spec(0, 100)).outcome, Outcome::out_of_memory);
  EXPECT_EQ(run(spec(1, 100)).exit_code, 1);
}

TEST_F(LocalRunnerTest, EveryFailureHasItsReason) {
  const std::vector<std::pair<std::string, std::string>> cases{{"torn", "torn"},
                                                               {"not_json", "not JSON"},
                                                               {"nan", "NaN"},
                                                               {"negative", "latency is negative"},
                                                               {"empty", "is empty"},
                                                               {"early_exit", "end_profile_step is 5"},
                                                               {"typo", "NameError: name 'modle' is not defined"},
                                                               {"killed", "signal 9"}};
  for (const auto& [how, reason] : cases) {
    const TrialEnd end = run_misbehaving(how);
    EXPECT_EQ(end.outcome, Outcome::failed) << how;
    EXPECT_THAT(end.reason, HasSubstr(reason)) << how;
    EXPECT_EQ(end.infrastructure, how == "killed") << how << ": who is killed by another has no fault of its own";
    ends_.clear();
  }
}

TEST_F(LocalRunnerTest, OldEnginesMeasureLikeNewOnes) {
  const Json today = (make_runner({}), run(spec(0)).metrics);
  uint64_t id = 1;
  for (const std::vector<std::string>& how : {std::vector<std::string>{"--misbehave", "milliseconds"},
                                              {"--misbehave", "old_names", "--misbehave", "no_accumulation"}}) {
    make_runner(how);
    const Json metrics = run(spec(id++)).metrics;
    for (const auto& [name, value] : today.items()) {
      if (name == "FLOPS_per_gpu") continue;  // the fixture leaves it as it is
      EXPECT_NEAR(metrics[name].get<double>(), value.get<double>(), 1e-6 * value.get<double>()) << name;
    }
  }
}

TEST_F(LocalRunnerTest, AGoodResultCountsWhateverTheExitStatus) {
  const TrialEnd end = run_misbehaving("fail_after_result");
  EXPECT_EQ(end.outcome, Outcome::completed);
  EXPECT_THAT(end.warnings, ElementsAre(HasSubstr("exit status 1")));
}

TEST_F(LocalRunnerTest, ATakenPortIsInfrastructureAndTheNextAttemptGetsAnother) {
  make_runner({"--misbehave", "port_taken_once"});
  TrialSpec trial = spec(0);
  EXPECT_TRUE(run(trial).infrastructure);
  const std::string first = read_text(trial_dir(0) / "cmd.txt");
  ends_.clear();
  trial.attempt = 2;
  EXPECT_EQ(run(trial).outcome, Outcome::completed);
  EXPECT_EQ(ends_[0].attempt, 2u);
  EXPECT_NE(read_text(trial_dir(0) / "cmd.txt"), first);
  EXPECT_EQ(read_text(trial_dir(0) / "attempts" / "1" / "cmd.txt"), first);
}

TEST_F(LocalRunnerTest, ATrialThatGoesOnForEverIsTimedOut) {
  adjust = [](TrialRunnerOptions& options) { options.trial_timeout = std::chrono::milliseconds(100); };
  const TrialEnd end = run_misbehaving("ignore_term");
  EXPECT_EQ(end.outcome, Outcome::timed_out);
  EXPECT_THAT(end.reason, HasSubstr("--trial-timeout"));
}

TEST_F(LocalRunnerTest, ATrialWithoutProgressIsTimedOut) {
  adjust = [](TrialRunnerOptions& options) { options.no_progress_timeout = std::chrono::milliseconds(100); };
  const TrialEnd end = run_misbehaving("hang");
  EXPECT_EQ(end.outcome, Outcome::timed_out);
  EXPECT_THAT(end.reason, HasSubstr("--no-progress-timeout"));
}

TEST_F(LocalRunnerTest, ALockThatAnEarlierBuildLeftIsNamed) {
  const std::filesystem::path lock = dir() / "extensions/fused_adam/lock";
  std::filesystem::create_directories(lock.parent_path());
  write_text(lock, "");
  std::filesystem::last_write_time(lock, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  adjust = [&](TrialRunnerOptions& options) {
    options.no_progress_timeout = std::chrono::milliseconds(100);
    options.environment.push_back("TORCH_EXTENSIONS_DIR=" + (dir() / "extensions").string());
  };
  EXPECT_THAT(run_misbehaving("hang").reason, HasSubstr(lock.string()));
}

TEST_F(LocalRunnerTest, AResultBeforeAHangIsKept) {
  make_runner({"--misbehave", "hang_after_result"});
  runner_->start(spec(0));
  wait_for_file(trial_dir(0) / "metrics.json");
  runner_->stop(0, false);
  EXPECT_EQ(wait(0).outcome, Outcome::completed);
}

TEST_F(LocalRunnerTest, AfterItsResultATrialHasLittleTimeToEnd) {
  adjust = [](TrialRunnerOptions& options) {
    options.no_progress_timeout = std::chrono::seconds(4);
    options.patience_after_result = std::chrono::milliseconds(100);
  };
  const TrialEnd end = run_misbehaving("hang_after_result");
  EXPECT_EQ(end.outcome, Outcome::completed);
  EXPECT_THAT(end.warnings, Contains(HasSubstr("for 100 ms")));
}

// One rank ran out of memory; the others wait for it.
TEST_F(LocalRunnerTest, AfterAShortageATrialHasLittleTimeToEnd) {
  adjust = [](TrialRunnerOptions& options) {
    options.no_progress_timeout = std::chrono::seconds(4);
    options.patience_after_result = std::chrono::milliseconds(100);
  };
  make_runner_for({"sh", "-c", "echo 'CUDA out of memory. Tried to allocate 2.00 GiB' >&2; sleep 600",
                   "--deepspeed_config", "user.json"});
  EXPECT_EQ(run(spec(0)).outcome, Outcome::out_of_memory);
  EXPECT_THAT(read_text(trial_dir(0) / kExitFile), HasSubstr("for 100 ms"));
}

TEST_F(LocalRunnerTest, StoppingIsTermThenKill) {
  make_runner({"--misbehave", "ignore_term"});
  runner_->start(spec(0));
  wait_for_file(trial_dir(0) / "stdout.log");
  runner_->stop(0, false);
  EXPECT_EQ(ends_.count(0), 0u);  // never from inside stop
  const TrialEnd end = wait(0);
  EXPECT_EQ(end.outcome, Outcome::stopped);
  EXPECT_EQ(end.term_signal, SIGKILL);
  runner_->stop(0, true);  // it has ended: nobody's
}

TEST_F(LocalRunnerTest, NoProcessIsLeftWhenATrialEnds) {
  const TrialEnd end = run_misbehaving("leave_child");
  EXPECT_EQ(end.outcome, Outcome::completed);
  EXPECT_FALSE(is_alive(std::stoi(read_text(trial_dir(0) / "child.pid"))));
}

TEST_F(LocalRunnerTest, NoProcessIsLeftWhenTheRunnerGoes) {
  make_runner({"--misbehave", "leave_child", "--misbehave", "ignore_term"});
  runner_->start(spec(0));
  wait_for_file(trial_dir(0) / "stdout.log");
  runner_.reset();
  EXPECT_FALSE(is_alive(std::stoi(read_text(trial_dir(0) / "child.pid"))));
  loop_.wake();
  loop_.run_once();  // nothing of the runner is left in the loop
}

TEST_F(LocalRunnerTest, TheNextTrialMayBeStartedFromTheEndOfOne) {
  make_runner_for({"true", "--deepspeed_config", "user.json"});
  uint64_t ended = 0;
  runner_->on_ended = [&](const TrialEnd& end) {
    ended = end.id + 1;
    EXPECT_EQ(room(), 1);
    if (end.id < 3) runner_->start(spec(end.id + 1));
  };
  runner_->start(spec(0));
  run_until(loop_, [&] { return ended == 4; });
}

TEST_F(LocalRunnerTest, ACommandThatVanishedIsAFailedTrial) {
  write_program(dir() / "train", "#!/bin/sh\n");
  make_runner_for({"./train", "--deepspeed_config", "user.json"});
  std::filesystem::remove(dir() / "train");
  const TrialEnd end = run(spec(0));
  EXPECT_EQ(end.outcome, Outcome::failed);
  EXPECT_THAT(end.reason, HasSubstr("cannot run './train'"));
}

TEST_F(LocalRunnerTest, AMissingLauncherOrFolderIsTheMachinesFault) {
  launcher_ = "/no/dsat-launch";
  make_runner({});
  EXPECT_THAT(error_of([&] { runner_->start(spec(0)); }, DSAT_INTERNAL), HasSubstr("/no/dsat-launch"));
  EXPECT_EQ(room(), 1);
  adjust = [this](TrialRunnerOptions& options) { options.run_dir = dir() / "user.json"; };
  make_runner({});
  EXPECT_THAT(error_of([&] { runner_->start(spec(0)); }, DSAT_INTERNAL), HasSubstr("user.json"));
  EXPECT_EQ(room(), 1);
}

TEST_F(LocalRunnerTest, RunsInACopyOfTheFolderWhenAsked) {
  adjust = [](TrialRunnerOptions& options) { options.trial_cwd = TrialCwd::copy; };
  make_runner_for({"sh", "-c", "cat user.json; touch made-here", "--deepspeed_config", "user.json"});
  run(spec(0));
  EXPECT_EQ(read_text(trial_dir(0) / "stdout.log"), "{}");
  EXPECT_TRUE(std::filesystem::exists(trial_dir(0) / "cwd" / "made-here"));
  EXPECT_FALSE(std::filesystem::exists(dir() / "made-here"));
}

}  // namespace
}  // namespace dsat::host
