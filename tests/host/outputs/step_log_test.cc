// DeepSpeed's printed steps, in the wording of its versions, and what becomes of a metric file beside them.
#include "outputs/step_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace dsat::host {
namespace {

using ::testing::HasSubstr;

// What rank 0 of 0.14.5 prints in an optimizer step with steps_per_print 1.
std::vector<std::string> step_lines(int step, double rate, const std::string& timers,
                                    const std::string& peak = "0.31") {
  std::vector<std::string> lines{
      fmt::format("[2026-11-22 13:33:03,382] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped=0, lr=[0.001], "
                  "mom=[(0.9, 0.999)]",
                  step)};
  if (step > 2) {
    lines.push_back(
        fmt::format("[2026-11-22 13:33:03,382] [INFO] [timer.py:259:stop] epoch=0/micro_step={}/"
                    "global_step={}, RunningAvgSamplesPerSec=50.3, CurrSamplesPerSec={}, "
                    "MemAllocated=0.3GB, MaxMemAllocated={}GB",
                    step, step, rate, peak));
  }
  if (!timers.empty()) lines.push_back("[INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | " + timers);
  return lines;
}

std::vector<std::string> joined(const std::vector<std::vector<std::string>>& parts) {
  std::vector<std::string> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string timers(double forward, double backward, double step) {
  return fmt::format("fwd: {:.2f} | bwd: {:.2f} | bwd_inner: 1.00 | bwd_allreduce: 1.00 | step: {:.2f}", forward,
                     backward, step);
}

// What the engine writes for a last step of these times, 8 samples in 2 micro steps.
Json engine_metrics(double forward, double backward, double step) {
  const double latency = 2 * (forward + backward + step);
  return {{"forward", forward}, {"backward", backward},        {"step", step},
          {"latency", latency}, {"throughput", 8e6 / latency}, {"FLOPS_per_gpu", 1e12 / latency}};
}

const Json kConfig{{"train_batch_size", 8}, {"gradient_accumulation_steps", 2}};

TEST(StepLog, NumbersTimersByWhatIsPrintedBeforeThemOrByCounting) {
  const StepLog log = read_step_log(joined({step_lines(1, 0, timers(90, 90, 20)), step_lines(2, 0, timers(30, 60, 10)),
                                            step_lines(3, 80, timers(31, 61, 11), "1.5")}),
                                    false);
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_DOUBLE_EQ(log.steps.at(2).timers_us(), 100e3);
  EXPECT_DOUBLE_EQ(log.steps.at(3).backward_us, 61e3);
  EXPECT_DOUBLE_EQ(log.steps.at(3).samples_per_second, 80);
  EXPECT_EQ(log.peak_bytes, uint64_t{3} << 29);

  const std::vector<std::string> plain(4, "[Rank 0] time (ms) | " + timers(1, 2, 3));
  EXPECT_EQ(read_step_log(plain, false).steps.size(), 4u) << "0.18: the logger is silent, the timers are printed";
  EXPECT_EQ(read_step_log(plain, true).steps.size(), 0u) << "which steps they are is not known";
  EXPECT_EQ(read_step_log(joined({plain, step_lines(9, 5, timers(1, 2, 3)), plain}), true).steps.rbegin()->first, 13);
}

TEST(StepLog, ReadsTheOldWordsAndRankZeroAlone) {
  const StepLog log = read_step_log({"rank=0 time (ms) | forward: 10.00 | backward: 20.00 | backward_inner: 9.00 | "
                                     "backward_allreduce: 11.00 | step: 5.00",
                                     "[Rank 1] time (ms) | " + timers(7, 7, 7)},
                                    false);
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_DOUBLE_EQ(log.steps.at(1).timers_us(), 35e3);
}

// Each line counts micro steps; to 0.7.6 each micro step has one. Two micro steps make a step here.
TEST(StepLog, ReadsTheRatesThatCountMicroSteps) {
  const auto rate = [](int micro_step, int samples) {
    return fmt::format(
        "[2022-11-22 13:33:03,382] [INFO] [timer.py:207:stop] 0/{}, RunningAvgSamplesPerSec=50.3, "
        "CurrSamplesPerSec={}, MemAllocated=0.3GB, MaxMemAllocated=0.25GB",
        micro_step, samples);
  };
  const auto step = [](int number) { return step_lines(number, 0, "").front(); };
  const StepLog log = read_step_log({step(1), rate(3, 900), step(2), rate(4, 70), rate(5, 901), step(3), rate(6, 80),
                                     "[Rank 0] time (ms) | " + timers(1, 2, 3), rate(7, 902)},
                                    false);
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps.at(1).samples_per_second, 900);
  EXPECT_EQ(log.steps.at(2).samples_per_second, 70);
  EXPECT_EQ(log.steps.at(3).samples_per_second, 80);
  EXPECT_DOUBLE_EQ(log.steps.at(3).timers_us(), 6e3);
  EXPECT_EQ(log.peak_bytes, uint64_t{1} << 28);
}

TEST(StepLog, MicroStepsTheOptimizersTimersAndNonsenseAreNoSteps) {
  const StepLog log = read_step_log(
      {"[Rank 0] time (ms) | fwd_microstep: 15.97 | bwd_microstep: 66.58 | step_microstep: 0.03",
       "[Rank 0] time (ms) | optimizer_allgather: 42.26 | optimizer_gradients: 0.30 | optimizer_step: 1.69",
       "global_step=nan, CurrSamplesPerSec=5", "global_step=-3, CurrSamplesPerSec=5",
       "CurrSamplesPerSec=", "global_step=4, RunningAvgSamplesPerSec=1, CurrSamplesPerSec=inf, MaxMemAllocated=nanGB",
       "global_step=5, CurrSamplesPerSec=1e308, MaxMemAllocated=1e308GB"},
      false);
  for (const auto& [number, step] : log.steps) {
    EXPECT_EQ(step.samples_per_second, 0) << number;
    EXPECT_EQ(step.timers_us(), 0) << number;
  }
  EXPECT_FALSE(log.peak_bytes);
}

// Steps 1 and 2 are cold, 4 carries the flops profiler, 6 is the file's: 3, 5 and 6 are compared.
TEST(StepLog, TheMedianOfTheWindowsTimersReplacesTheFilesOneStep) {
  const StepLog log =
      read_step_log(joined({step_lines(1, 0, timers(900, 900, 90)), step_lines(2, 0, timers(500, 500, 90)),
                            step_lines(3, 80, timers(40, 50, 10)), step_lines(4, 2, timers(0, 0, 0)),
                            step_lines(5, 76, timers(42, 52, 12)), step_lines(6, 30, "")}),
                    false);
  Json metrics = engine_metrics(80e3, 40e3, 5e3);  // 250 ms: a step that something else held up
  EXPECT_EQ(use_logged_steps(log, {3, 5}, kConfig, metrics), "");
  EXPECT_DOUBLE_EQ(metrics["latency"].get<double>(), 106e3);
  EXPECT_DOUBLE_EQ(metrics["forward"].get<double>(), 21e3);
  EXPECT_DOUBLE_EQ(metrics["backward"].get<double>(), 26e3);
  EXPECT_DOUBLE_EQ(metrics["step"].get<double>(), 6e3) << "the parts are those of the step in the middle";
  EXPECT_NEAR(metrics["throughput"].get<double>() * 106e3, 8e6, 1);
  EXPECT_NEAR(metrics["FLOPS_per_gpu"].get<double>() * 106e3, 1e12, 1e3) << "the same work in another time";
  EXPECT_EQ(metrics["latency_steps"], 3);
  EXPECT_NEAR(metrics["latency_spread"].get<double>(), 84.9e3 / 106e3, 0.01);
}

// A rate counts what the script does between the engine's calls, here 20 % more: the file's base is kept.
TEST(StepLog, RatesCountWhereThereAreNoTimersAndInTheFilesOwnBase) {
  const StepLog log = read_step_log(
      joined({step_lines(3, 20, ""), step_lines(4, 1, ""), step_lines(5, 25, ""), step_lines(6, 10, "")}), false);
  Json metrics = engine_metrics(100e3, 200e3, 33e3);
  const double latency = metrics["latency"].get<double>();
  EXPECT_EQ(use_logged_steps(log, {3, 5}, kConfig, metrics), "");
  EXPECT_NEAR(metrics["latency"].get<double>(), latency / 2, 1) << "the median is 20, the file's step had 10";
  EXPECT_NEAR(metrics["forward"].get<double>(), 50e3, 1);
  EXPECT_NEAR(metrics["throughput"].get<double>() * metrics["latency"].get<double>(), 8e6, 1);
  EXPECT_EQ(metrics["latency_steps"], 3);
}

// Two workers: every second step waits for both of them. Step 4's timers hold the profiler, its line is no outlier.
TEST(StepLog, TheClockCountsWhatTheScriptTakesBetweenSteps) {
  const auto lines_at = [](int step, int ms, const std::string& times) {
    std::vector<std::string> lines = step_lines(step, 80, times);
    const std::string clock = fmt::format("13:33:{:02d},{:03d}", ms / 1000, ms % 1000);
    for (std::string& line : lines) {
      if (const size_t at = line.find("13:33:03,382"); at != std::string::npos) line.replace(at, clock.size(), clock);
    }
    return lines;
  };
  const auto log = [&](const std::string& ms5) {
    return read_step_log(joined({lines_at(1, 900, timers(90, 90, 9)), lines_at(2, 1000, timers(4, 5, 1)),
                                 lines_at(3, 2010, timers(4, 5, 1)), lines_at(4, 2040, timers(24, 5, 1)),
                                 lines_at(5, 3050, ms5), lines_at(6, 3060, "")}),
                         false);
  };
  Json metrics = engine_metrics(2e3, 2.5e3, 0.5e3);
  EXPECT_EQ(use_logged_steps(log(timers(4, 5, 1)), {3, 5}, kConfig, metrics), "");
  EXPECT_NEAR(metrics["latency"].get<double>(), 10e3, 1);
  EXPECT_NEAR(metrics["wall_latency"].get<double>(), 10e3 + 2000e3 / 4, 1) << "the mean, not the median";
  Json own = engine_metrics(2e3, 2.5e3, 0.5e3);
  own["wall_latency"] = 77e3;
  EXPECT_EQ(use_logged_steps(log(timers(4, 5, 1)), {3, 5}, kConfig, own), "");
  EXPECT_EQ(own["wall_latency"], 77e3) << "the script's own";
  EXPECT_TRUE(script_time_us(log(""), {3, 5}, 10e3)) << "three steps are enough";
  EXPECT_FALSE(script_time_us(log(""), {4, 5}, 10e3));
}

TEST(StepLog, TheFileStaysWhereTheLogSaysTooLittleOrSomethingElse) {
  const Json before = engine_metrics(80e3, 40e3, 5e3);
  const auto kept = [&](const std::vector<std::string>& lines, Json metrics, ProfileWindow window = {3, 5}) {
    const Json given = metrics;
    const std::string warning = use_logged_steps(read_step_log(lines, false), window, kConfig, metrics);
    EXPECT_EQ(metrics, given);
    return warning;
  };
  EXPECT_EQ(kept({}, before), "");
  const auto two = joined({step_lines(3, 80, ""), step_lines(6, 80, "")});
  EXPECT_EQ(kept(two, before), "") << "two steps have no median worth the name";
  const auto whole =
      joined({step_lines(3, 80, timers(40, 50, 10)), step_lines(5, 80, timers(40, 50, 10)), step_lines(6, 80, "")});
  EXPECT_EQ(kept(whole, before, {5, 5}), "") << "a window of one step: 5 and, without timers, 6";
  Json own = before;
  own["latency"] = 1e6;
  EXPECT_EQ(kept(whole, own), "") << "the script measures something else than the engine";
  EXPECT_EQ(kept(whole, Json{{"throughput", 5.0}}), "");
  // Not even the time by the clock is taken from such a log.
  std::vector<std::string> other;
  for (const int step : {2, 3, 4, 5, 6}) {
    for (const std::string& line : step_lines(step, 80, timers(1e5, 1e5, 1e5))) other.push_back(line);
  }
  EXPECT_THAT(kept(other, before), HasSubstr("metric file"));
}

// With fp16 and a loss scale that is too high: the optimizer's part of such a step is empty.
class StepsThatUpdateNothing : public ::testing::Test {
 protected:
  // The steps 1 to 6; 3 and 5 have timers, 6 is the file's. `skipped`: the count that each line has.
  std::string use(const std::vector<int>& skipped, bool has_timers = true) {
    std::vector<std::string> lines;
    for (int step = 1; step <= 6; ++step) {
      const double ms = step == 3 ? 20 : 30;
      for (std::string& line : step_lines(step, 80, has_timers && step != 6 ? timers(40, 50, ms) : "")) {
        if (const size_t at = line.find("skipped=0"); at != std::string::npos) {
          line.replace(at, 9, fmt::format("skipped={}", skipped.at(static_cast<size_t>(step) - 1)));
        }
        lines.push_back(line);
      }
    }
    metrics_ = engine_metrics(20e3, 25e3, 0.1e3);
    return use_logged_steps(read_step_log(lines, false), {3, 5}, kConfig, metrics_);
  }
  Json metrics_;
};

TEST_F(StepsThatUpdateNothing, AreNotCompared) {
  EXPECT_EQ(use({1, 2, 3, 4, 4, 5}), "");
  EXPECT_DOUBLE_EQ(metrics_["latency"].get<double>(), 120e3) << "step 5 alone: neither 3 nor the file's";
  EXPECT_EQ(metrics_["latency_steps"], 1);
  EXPECT_FALSE(metrics_.contains("latency_spread")) << "one step has none";
  EXPECT_EQ(use({1, 2, 2, 3, 3, 4}), "");
  EXPECT_DOUBLE_EQ(metrics_["latency"].get<double>(), 115e3) << "between 3 and 5";
}

TEST_F(StepsThatUpdateNothing, AreAllThereIs) {
  EXPECT_THAT(use({1, 2, 3, 4, 5, 6}), HasSubstr("fp16.initial_scale_power"));
  EXPECT_EQ(metrics_, engine_metrics(20e3, 25e3, 0.1e3));
  EXPECT_THAT(use({1, 2, 2, 2, 2, 3}, false), HasSubstr("overflowed")) << "without timers two steps say too little";
  EXPECT_EQ(use({1, 2, 3, 4, 5, 5}), "") << "the file's step is whole";
}

// Steps 1 to 5 are not printed, so any of them may be among those that the tenth counts.
TEST_F(StepsThatUpdateNothing, MayBeAnyOfThoseThatWereNotPrinted) {
  std::vector<std::string> lines(9, "[Rank 0] time (ms) | " + timers(40, 50, 10));
  lines.emplace_back("[Rank 0] step=10, skipped=6, lr=[0.001], mom=[0.9]");
  lines.emplace_back("[Rank 0] time (ms) | " + timers(40, 50, 10));
  const StepLog log = read_step_log(lines, false);
  ASSERT_EQ(log.steps.size(), 10u);
  for (const auto& [number, step] : log.steps) EXPECT_TRUE(step.updates_nothing) << number;
  for (const auto& [number, step] : read_step_log({lines[9], lines[10]}, true).steps) {
    EXPECT_FALSE(step.updates_nothing) << number << ": they may have been skipped long before";
  }
}

// A second engine counts anew, and so does a script that goes back to a checkpoint. Seen to read for ever.
TEST_F(StepsThatUpdateNothing, AreThoseWhoseNumberWentBack) {
  std::vector<std::string> lines;
  for (const char* step : {"step=3, skipped=0", "step=5, skipped=0", "step=3, skipped=1", "step=4, skipped=1"}) {
    lines.push_back(fmt::format("[Rank 0] {}, lr=[0.001], mom=[0.9]", step));
    lines.push_back("[Rank 0] time (ms) | " + timers(40, 50, 10));
  }
  const StepLog log = read_step_log(lines, false);
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_TRUE(log.steps.at(3).updates_nothing);
  EXPECT_FALSE(log.steps.at(4).updates_nothing);
  EXPECT_FALSE(log.steps.at(5).updates_nothing);
}

}  // namespace
}  // namespace dsat::host
