// The lines of DeepSpeed's pipeline engine, as 0.14.5 prints them.
#include "outputs/pipeline_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace dsat::host {
namespace {

const Json kBatchOfEight{{"train_batch_size", 8}};

std::string pipeline_line(int step, double rate) {
  return fmt::format("steps: {} loss: 2.3759 iter time (s): 0.001 samples/sec: {:.3f}", step, rate);
}

std::vector<std::string> pipeline_lines(int first, int last, double rate) {
  std::vector<std::string> lines{"stage=0 layers=5"};
  for (int step = first; step <= last; ++step) {
    lines.push_back(fmt::format("[Rank 0] step={}, skipped=0, lr=[0.001]", step));
    lines.push_back(pipeline_line(step, step == 1 || step == 4 ? 1 : rate));  // cold, and the profiler's
  }
  return lines;
}

TEST(PipelineLog, TheWindowsStepsAreTheMetrics) {
  std::vector<std::string> lines = pipeline_lines(1, 200, 4000);
  lines.push_back("steps: many loss: nan iter time (s): inf samples/sec: inf");
  const auto report = read_pipeline_log(lines, {3, 5}, kBatchOfEight);
  ASSERT_TRUE(report);
  EXPECT_DOUBLE_EQ(report->metrics["throughput"], 4000);
  EXPECT_DOUBLE_EQ(report->metrics["latency"], 2000);
  EXPECT_EQ(report->metrics["latency_steps"], 3);
  EXPECT_NEAR(report->metrics["latency_spread"], 0, 1e-9);
}

TEST(PipelineLog, WithoutTheWindowsLinesLaterOnesCount) {
  EXPECT_DOUBLE_EQ(read_pipeline_log(pipeline_lines(900, 950, 500), {3, 5}, kBatchOfEight)->metrics["throughput"], 500);
  EXPECT_DOUBLE_EQ(read_pipeline_log({pipeline_line(10, 250)}, {3, 5}, kBatchOfEight)->metrics["latency"], 32000);
}

TEST(PipelineLog, ARunThatEndsWithinTheWindowHasNone) {
  EXPECT_FALSE(read_pipeline_log(pipeline_lines(1, 5, 4000), {3, 5}, kBatchOfEight));
  EXPECT_FALSE(read_pipeline_log({"my own steps: 9 iter time (s): 1 samples/sec: 3"}, {3, 5}, kBatchOfEight));
  EXPECT_FALSE(read_pipeline_log({}, {3, 5}, kBatchOfEight));
}

}  // namespace
}  // namespace dsat::host
