// What the runner makes of the folders that a host which died has left behind.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/runner/runner_fixture.h"
#include "runner/trial_files.h"

namespace dsat::host {
namespace {

using Recover = RunnerTest;

TEST_F(Recover, NothingThereIsRunAgain) {
  make_runner({});
  EXPECT_EQ(runner_->find_end(spec(0)), std::nullopt);
}

TEST_F(Recover, ACompleteResultIsTakenThoughNobodySawTheEnd) {
  make_runner({});
  const TrialEnd seen = run(spec(0));
  std::filesystem::remove(trial_dir(0) / kExitFile);
  const auto end = runner_->find_end(spec(0));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->outcome, Outcome::completed);
  EXPECT_EQ(end->metrics, seen.metrics);
  EXPECT_EQ(end->peak_bytes, seen.peak_bytes);
  EXPECT_FALSE(end->ended_at.empty());
}

TEST_F(Recover, ATornResultOfATrialThatDiedWithTheHostIsRunAgain) {
  make_runner({"--misbehave", "torn"});
  run(spec(0));
  std::filesystem::remove(trial_dir(0) / kExitFile);
  EXPECT_EQ(runner_->find_end(spec(0)), std::nullopt);
}

TEST_F(Recover, WhatDiedWithTheHostRanUntilItsLastLineAtLeast) {
  make_runner({"--misbehave", "torn"});
  EXPECT_EQ(runner_->last_written_at(spec(0)), "") << "it never ran";
  const TrialEnd seen = run(spec(0));
  const auto two_hours_later = std::filesystem::file_time_type::clock::now() + std::chrono::hours(2);
  std::filesystem::last_write_time(trial_dir(0) / kStdoutFile, two_hours_later);
  const auto written = parse_rfc3339(runner_->last_written_at(spec(0))), ended = parse_rfc3339(seen.ended_at);
  ASSERT_TRUE(written && ended);
  EXPECT_GT(*written - *ended, std::chrono::minutes(110));
  EXPECT_EQ(runner_->last_written_at(spec(0, 7)), "") << "another configuration's run";
}

TEST_F(Recover, WhatAPowerLossTookOfAnEndThatWasSeenIsRunAgain) {
  make_runner({});
  run(spec(0));
  std::filesystem::remove(trial_dir(0) / kMetricsFile);
  EXPECT_EQ(runner_->find_end(spec(0)), std::nullopt) << "it had a result";
  make_runner({"--device-memory", "1"});
  run(spec(1));
  for (const char* log : {kStderrFile, kStdoutFile}) std::filesystem::resize_file(trial_dir(1) / log, 0);
  EXPECT_EQ(runner_->find_end(spec(1)), std::nullopt) << "it had a reason";
}

TEST_F(Recover, AFailureWhoseEndWasSeenIsNotRunAgain) {
  make_runner({"--device-memory", "1"});
  const TrialEnd seen = run(spec(0));
  const auto end = runner_->find_end(spec(0));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->outcome, Outcome::out_of_memory);
  EXPECT_EQ(end->exit_code, 1);
  EXPECT_EQ(end->ended_at, seen.ended_at);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(end->started_at, starts_[0].started_at);
  EXPECT_EQ(end->last_line, seen.last_line);
}

TEST_F(Recover, AStoppedOrDisturbedTrialIsRunAgain) {
  make_runner({"--misbehave", "port_taken"});
  run(spec(0));
  EXPECT_EQ(runner_->find_end(spec(0)), std::nullopt);
  make_runner({"--misbehave", "hang"});
  runner_->start(spec(1));
  wait_for_file(trial_dir(1) / kStdoutFile);
  runner_->stop(1, true);
  EXPECT_EQ(wait(1).outcome, Outcome::stopped);
  EXPECT_EQ(runner_->find_end(spec(1)), std::nullopt);
}

TEST_F(Recover, AFolderOfAnotherConfigurationIsNotTaken) {
  make_runner({});
  run(spec(0, 4));
  EXPECT_TRUE(runner_->find_end(spec(0, 4)).has_value());
  EXPECT_EQ(runner_->find_end(spec(0, 5)), std::nullopt);
  write_text(trial_dir(0) / kConfigFile, "{torn");
  EXPECT_EQ(runner_->find_end(spec(0, 4)), std::nullopt);
}

TEST_F(Recover, WaitsForTheLastProcessOfATrialWhoseHostDied) {
  // A host that is killed in the middle of a trial that will not go by itself.
  make_runner({"--misbehave", "hang"});
  const pid_t host = fork();
  if (host == 0) {
    runner_->start(spec(0));
    for (;;) pause();
  }
  wait_for_file(trial_dir(0) / kStdoutFile);
  EXPECT_TRUE(FolderLock(trial_dir(0)).is_held_by_other());
  kill(host, SIGKILL);
  waitpid(host, nullptr, 0);
  EXPECT_EQ(runner_->find_end(spec(0)), std::nullopt);
  EXPECT_GE(FolderLock(trial_dir(0)).fd(), 0);
}

TEST_F(Recover, AnExitOfAnEarlierAttemptSaysNothing) {
  make_runner({"--misbehave", "typo"});
  run(spec(0));
  TrialSpec second = spec(0);
  second.attempt = 2;
  EXPECT_EQ(runner_->find_end(second), std::nullopt);
}

}  // namespace
}  // namespace dsat::host
