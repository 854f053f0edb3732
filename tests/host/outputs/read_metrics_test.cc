// Result files of older and newer engines, and metrics by their names.
#include "outputs/read_metrics.h"

#include <gmock/gmock.h>

#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Json config_with(int train_batch, int accumulation) {
  return {{"train_batch_size", train_batch}, {"gradient_accumulation_steps", accumulation}};
}

TrialReport read(const Json& report, const Json& config) { return read_metrics(report.dump(), "metrics.json", config); }

std::string why_not(const std::string& text) {
  return error_of([&] { read_metrics(text, "metrics.json", config_with(8, 1)); });
}

TEST(MetricInfo, KnowsNamesAliasesAndDirections) {
  for (const char* name : {"FLOPS_per_gpu", "FLOPS", "flops"}) {
    EXPECT_EQ(metric_info(name)->name, "FLOPS_per_gpu");
    EXPECT_TRUE(metric_info(name)->maximise);
  }
  EXPECT_TRUE(metric_info("throughput")->maximise);
  EXPECT_TRUE(metric_info("wall_throughput")->maximise);
  for (const char* name : {"latency", "forward", "backward", "step", "wall_latency"})
    EXPECT_FALSE(metric_info(name)->maximise);
  EXPECT_EQ(metric_info("fwd")->name, "forward");
  EXPECT_EQ(metric_info("bwd")->name, "backward");
}

TEST(MetricInfo, RefusesOthersWithTheList) {
  for (const char* name : {"speed", "", "Latency", "FLOPS_per_gpu "}) {
    const auto info = metric_info(name);
    ASSERT_FALSE(info.ok());
    EXPECT_THAT(info.status().message(), HasSubstr("throughput, latency"));
  }
}

TEST(ReadMetrics, TakesTodaysEngineAsItIs) {
  const Json report{{"fwd", 100.0}, {"bwd", 200.0},        {"step", 100.0},        {"latency", 800.0},
                    {"rank", 0},    {"throughput", 20000}, {"FLOPS_per_gpu", 1e12}};
  const TrialReport read_back = read(report, config_with(16, 2));
  EXPECT_EQ(read_back.metrics, (Json{{"forward", 100.0},
                                     {"backward", 200.0},
                                     {"step", 100.0},
                                     {"latency", 800.0},
                                     {"throughput", 20000.0},
                                     {"FLOPS_per_gpu", 1e12}}));
  EXPECT_THAT(read_back.warnings, IsEmpty());
}

TEST(ReadMetrics, FlopsThatWereNotCountedAreNoMetric) {
  const TrialReport report =
      read({{"throughput", 20000}, {"latency", 800.0}, {"FLOPS_per_gpu", 0}}, config_with(16, 2));
  EXPECT_EQ(report.metrics, (Json{{"latency", 800.0}, {"throughput", 20000.0}}));
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(ReadMetrics, ScalesMilliseconds) {
  const TrialReport report = read(
      {{"forward", 1.0}, {"backward", 2.0}, {"step", 1.0}, {"latency", 4.0}, {"throughput", 2000}}, config_with(8, 1));
  EXPECT_DOUBLE_EQ(report.metrics["latency"], 4000.0);
  EXPECT_DOUBLE_EQ(report.metrics["forward"], 1000.0);
  EXPECT_DOUBLE_EQ(report.metrics["throughput"], 2000.0);
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(ReadMetrics, PutsAccumulationIntoALatencyWithoutIt) {
  const TrialReport report = read({{"forward", 100},
                                   {"backward", 200},
                                   {"step", 100},
                                   {"latency", 400},
                                   {"throughput", 80000},
                                   {"FLOPS_per_gpu", 4e12},
                                   {"rank", 0}},
                                  config_with(32, 4));
  EXPECT_DOUBLE_EQ(report.metrics["latency"], 1600.0);
  EXPECT_DOUBLE_EQ(report.metrics["throughput"], 20000.0);
  EXPECT_DOUBLE_EQ(report.metrics["FLOPS_per_gpu"], 1e12);
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(ReadMetrics, HandlesBothOldHabitsTogether) {
  const TrialReport report =
      read({{"forward", 1}, {"backward", 2}, {"step", 1}, {"latency", 4}, {"throughput", 8000}, {"rank", 0}},
           config_with(32, 4));
  EXPECT_DOUBLE_EQ(report.metrics["latency"], 16000.0);
  EXPECT_DOUBLE_EQ(report.metrics["throughput"], 2000.0);
}

// It knows its step as a whole. DeepSpeed's engine writes its rank, in every version; other programs do not.
TEST(ReadMetrics, TheTotalsOfAProgramWithoutDeepSpeedAreLeftAlone) {
  const Json report{{"forward", 400.0},  {"backward", 800.0},         {"step", 100.0},
                    {"latency", 1300.0}, {"throughput", 32e6 / 1300}, {"FLOPS_per_gpu", 4e12}};
  const TrialReport read_back = read(report, config_with(32, 4));
  EXPECT_EQ(read_back.metrics, report);
  EXPECT_THAT(read_back.warnings, IsEmpty());
}

TEST(ReadMetrics, ALatencyOfOneStepAfterSeveralMicroStepsIsLeftAlone) {
  // forward and backward twice, then one step: how a trainer that steps once counts.
  const TrialReport report =
      read({{"forward", 100}, {"backward", 200}, {"step", 50}, {"latency", 650}, {"throughput", 16e6 / 650}},
           config_with(16, 2));
  EXPECT_DOUBLE_EQ(report.metrics["latency"], 650.0);
}

TEST(ReadMetrics, WarnsOfAnyOtherMismatchAndKeepsTheNumbers) {
  const TrialReport report = read({{"latency", 1000.0}, {"throughput", 9000.0}}, config_with(8, 1));
  EXPECT_THAT(report.warnings, SizeIs(1));
  EXPECT_DOUBLE_EQ(report.metrics["throughput"], 9000.0);
  EXPECT_THAT(read({{"latency", 1000.0}, {"throughput", 8100.0}}, config_with(8, 1)).warnings, IsEmpty());
}

TEST(ReadMetrics, AThroughputThatIsWrongByTheAccumulationFollowsFromBatchAndTime) {
  const Json too_large{{"latency", 1600.0}, {"throughput", 80000.0}};
  const TrialReport report = read(too_large, config_with(32, 4));
  EXPECT_DOUBLE_EQ(report.metrics["throughput"], 20000.0);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("gradient_accumulation_steps = 4")));
  Json too_small{{"latency", 1600.0}, {"throughput", 5000.0}, {"forward", 100}, {"backward", 200}, {"step", 100}};
  EXPECT_DOUBLE_EQ(read(too_small, config_with(32, 4)).metrics["throughput"], 20000.0);
  // A script that ignores the accumulation trains a quarter of the batch in that time: its throughput is true.
  too_small["forward"] = 700;
  EXPECT_DOUBLE_EQ(read(too_small, config_with(32, 4)).metrics["throughput"], 5000.0);
  EXPECT_THAT(read(too_small, config_with(32, 4)).warnings, ElementsAre(HasSubstr(std::string(kMeasuresElse))));
  EXPECT_DOUBLE_EQ(read(too_large, config_with(32, 1)).metrics["throughput"], 80000.0);
}

TEST(ReadMetrics, FillsInTheOtherOfThroughputAndLatency) {
  EXPECT_DOUBLE_EQ(read({{"latency", 1000.0}}, config_with(8, 1)).metrics["throughput"], 8000.0);
  EXPECT_DOUBLE_EQ(read({{"throughput", 8000.0}}, config_with(8, 1)).metrics["latency"], 1000.0);
}

TEST(ReadMetrics, ReadsOptionalKeysAndLeavesSenselessOnesOut) {
  TrialReport report = read({{"latency", 1.0},
                             {"peak_memory", 1000},
                             {"device_memory", 2000},
                             {"world_size", 4},
                             {"samples", 64},
                             {"wall_latency", 1.5},
                             {"losses", {1.0, 0.5}}},
                            config_with(8, 1));
  EXPECT_EQ(report.peak_bytes, 1000u);
  EXPECT_EQ(report.device_memory_bytes, 2000u);
  EXPECT_EQ(report.world_size, 4);
  EXPECT_DOUBLE_EQ(report.metrics["wall_latency"], 1.5);
  EXPECT_FALSE(report.metrics.contains("losses"));
  report = read({{"latency", 1.0}, {"peak_memory", -1}, {"world_size", "two"}}, config_with(8, 1));
  EXPECT_EQ(report.peak_bytes, std::nullopt);
  EXPECT_EQ(report.world_size, std::nullopt);
  EXPECT_THAT(report.warnings, SizeIs(2));
}

// dsat-trial writes so where nothing says how much memory its device has.
TEST(ReadMetrics, AnOptionalKeyThatIsNullIsUnknown) {
  const TrialReport report = read({{"latency", 1.0}, {"device_memory", nullptr}}, config_with(8, 1));
  EXPECT_EQ(report.device_memory_bytes, std::nullopt);
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(ReadMetrics, FlopsThatWereNotCountedAreLeftOutWithoutAWarning) {
  const TrialReport report = read({{"FLOPS_per_gpu", 0}, {"latency", 1000}}, config_with(8, 1));
  EXPECT_FALSE(report.metrics.contains("FLOPS_per_gpu"));
  EXPECT_THAT(report.left_out, ElementsAre("FLOPS_per_gpu"));
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(ReadMetrics, ANumberThatNoMachineReachesIsLeftOutAndWinsNothing) {
  const TrialReport report = read(
      {{"FLOPS_per_gpu", 1.7e308}, {"latency", 1000}, {"throughput", 8000}, {"peak_memory", 1e308}}, config_with(8, 1));
  EXPECT_FALSE(report.metrics.contains("FLOPS_per_gpu"));
  EXPECT_THAT(report.left_out, ElementsAre("FLOPS_per_gpu"));
  EXPECT_EQ(report.metrics["throughput"], 8000);
  EXPECT_FALSE(report.peak_bytes);
  ASSERT_THAT(report.warnings, SizeIs(2));
  EXPECT_THAT(report.warnings[0], HasSubstr("FLOPS_per_gpu is 1.7e+308"));
  const TrialReport tiny = read({{"latency", 1e-300}, {"throughput", 8000}}, config_with(8, 1));
  EXPECT_EQ(tiny.metrics["latency"], 1000) << "it follows from the throughput";
  EXPECT_THAT(why_not(R"({"throughput": 1e308})"), HasSubstr("has none of"));
  EXPECT_THAT(error_of([] { read_model_info(R"({"num_params": 1e300})", "model_info.json"); }),
              HasSubstr("num_params is 1e+300"));
}

TEST(ReadMetrics, SaysWhyAFileIsNoResult) {
  EXPECT_THAT(why_not(""), HasSubstr("metrics.json is empty"));
  EXPECT_THAT(why_not("{\"latency\": 12"), HasSubstr("torn"));
  EXPECT_THAT(why_not("latency: 12"), HasSubstr("not JSON"));
  EXPECT_THAT(why_not("[1, 2]"), HasSubstr("JSON object"));
  EXPECT_THAT(why_not("{\"latency\": NaN}"), HasSubstr("NaN"));
  EXPECT_THAT(why_not("{\"latency\": Infinity}"), HasSubstr("Infinity"));
  EXPECT_THAT(why_not("{\"latency\": -3}"), AllOf(HasSubstr("latency"), HasSubstr("negative (-3.0)")));
  EXPECT_THAT(why_not("{\"latency\": 0}"), HasSubstr("latency is 0"));
  EXPECT_THAT(why_not("{\"throughput\": \"fast\"}"), HasSubstr("throughput is not"));
  EXPECT_THAT(why_not("{\"fwd\": null, \"latency\": 1}"), HasSubstr("fwd is not"));
  EXPECT_THAT(why_not("{\"rank\": 0}"), HasSubstr("none of FLOPS_per_gpu"));
  EXPECT_THAT(why_not(std::string("{\"latency\": \0}", 14)), HasSubstr("metrics.json"));
}

TEST(ReadModelInfo, PassesEveryNumberOn) {
  const auto report = read_model_info(
      R"({"num_params": 10, "trainable_num_params": 8, "activation_mem_per_gpu": 0, "rank": 0,
          "largest_layer_params": 4, "device_memory": 2000, "world_size": 2, "name": "gpt"})",
      "model_info.json");
  EXPECT_EQ(report.metrics, (Json{{"num_params", 10},
                                  {"trainable_num_params", 8},
                                  {"activation_mem_per_gpu", 0},
                                  {"largest_layer_params", 4},
                                  {"device_memory", 2000},
                                  {"world_size", 2}}));
  EXPECT_EQ(report.device_memory_bytes, 2000u);
  EXPECT_EQ(report.world_size, 2);
}

TEST(ReadModelInfo, SaysHowManyNumbersItLeavesOut) {
  Json many{{"num_params", 10}, {"beyond", 1e300}};
  for (int i = 0; i < 101; ++i) many["figure " + std::to_string(i)] = i;
  const auto report = read_model_info(many.dump(), "model_info.json");
  EXPECT_EQ(report.metrics.size(), 100u);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_THAT(report.warnings[0], HasSubstr("model_info.json: 3 numbers"));
  EXPECT_TRUE(read_model_info("{\"num_params\": 10}", "model_info.json").warnings.empty());
}

TEST(ReadModelInfo, NeedsTheNumberOfParameters) {
  const auto message = [](const std::string& text) {
    return error_of([&] { read_model_info(text, "model_info.json"); });
  };
  EXPECT_THAT(message("{}"), HasSubstr("has no num_params"));
  EXPECT_THAT(message(R"({"num_params": 0})"), HasSubstr("num_params is 0"));
  EXPECT_THAT(message(R"({"num_params": 5, "activation_mem_per_gpu": -1})"), HasSubstr("negative"));
  EXPECT_THAT(message("{"), HasSubstr("torn"));
}

}  // namespace
}  // namespace dsat::host
