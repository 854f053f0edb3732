// What a strategy gets of a trial's end.
#include "study/turn/strategy_events.h"

#include <gtest/gtest.h>

namespace dsat::host {
namespace {

Trial ended(Outcome outcome) {
  Trial trial;
  trial.record.id = 7;
  trial.record.outcome = outcome;
  return trial;
}

TEST(ResultEvent, HasTheMetricsAndTheLastProfiledStep) {
  Trial trial = ended(Outcome::completed);
  trial.record.metrics = {{"latency", 5.0}};
  trial.end = EndDetails();
  trial.end->step = 4;
  const StrategyEvent event = result_event(trial, std::nullopt);
  EXPECT_EQ(event.kind, StrategyEvent::Kind::result);
  EXPECT_EQ(event.trial, 7u);
  EXPECT_EQ(event.step, 4u);
  EXPECT_EQ(event.metrics, (Json{{"latency", 5.0}}));
}

TEST(ResultEvent, KnowsTheDeviceFromTheTrialElseFromTheHost) {
  Trial trial = ended(Outcome::completed);
  EXPECT_EQ(result_event(trial, 16'000).metrics, (Json{{"device_memory", 16'000}}));
  trial.record.metrics = {{"device_memory", 15'000}};
  EXPECT_EQ(result_event(trial, 16'000).metrics, (Json{{"device_memory", 15'000}}));
}

TEST(ExitEvent, HasAllThatTheTrialKnows) {
  Trial trial = ended(Outcome::out_of_memory);
  trial.record.peak_bytes = 300;
  trial.record.peak_above_bytes = 400;
  trial.record.allocator_retries = 2;
  trial.record.reason = "no memory";
  trial.record.attempt = 3;
  trial.end = EndDetails();
  trial.end->exit_code = 9;
  trial.end->term_signal = 6;
  const StrategyEvent event = exit_event(trial);
  EXPECT_EQ(event.kind, StrategyEvent::Kind::exited);
  EXPECT_EQ(event.trial, 7u);
  EXPECT_EQ(event.outcome, static_cast<int>(Outcome::out_of_memory));
  EXPECT_EQ(event.peak_bytes, 300u);
  EXPECT_EQ(event.peak_above_bytes, 400u);
  EXPECT_EQ(event.allocator_retries, 2u);
  EXPECT_EQ(event.reason, "no memory");
  EXPECT_EQ(event.attempt, 3u);
  EXPECT_EQ(event.exit_code, 9);
  EXPECT_EQ(event.term_signal, 6);
}

// More ranks take more of the machine: nothing is known of what a device holds.
TEST(ExitEvent, MemoryOfTheHostThatRanOutIsAFailureToASearcherAndNotToTheProfiler) {
  Trial trial = ended(Outcome::out_of_memory);
  trial.end = EndDetails();
  EXPECT_EQ(exit_event(trial).outcome, static_cast<int>(Outcome::out_of_memory));
  trial.end->of_host = true;
  EXPECT_EQ(exit_event(trial).outcome, static_cast<int>(Outcome::failed));
  trial.phase = Phase::profiler;
  EXPECT_EQ(exit_event(trial).outcome, static_cast<int>(Outcome::out_of_memory));
}

// A trial that never started, or ran under a host that died.
TEST(ExitEvent, WhatIsNotKnownIsZero) {
  const StrategyEvent event = exit_event(ended(Outcome::lost));
  EXPECT_EQ(event.peak_bytes, 0u);
  EXPECT_EQ(event.peak_above_bytes, 0u);
  EXPECT_EQ(event.allocator_retries, 0u);
  EXPECT_EQ(event.attempt, 1u);
  EXPECT_EQ(event.exit_code, -1);
  EXPECT_EQ(event.term_signal, 0);
}

}  // namespace
}  // namespace dsat::host
