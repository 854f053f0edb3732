// Reports of DeepSpeed's FLOPs profiler, in the older and the newer wording.
#include "outputs/flops_profiler_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kOlder =
    "-------------------------- DeepSpeed Flops Profiler --------------------------\n"
    "Profile Summary at step 10:\n"
    "Notations:\n"
    "fwd latency (forward propagation latency), bwd latency (backward propagation latency),\n"
    "\n"
    "world size:                                                   2\n"
    "batch size per GPU:                                           8\n"
    "params per gpu:                                               336.25 M\n"
    "params of model = params per GPU * mp_size:                   672.5 M\n"
    "fwd MACs per GPU:                                             500.0 G\n"
    "fwd flops per GPU:                                            1000.0 G\n"
    "fwd latency:                                                  80.0 ms\n"
    "bwd latency:                                                  119.5 ms\n"
    "fwd FLOPS per GPU = fwd flops per GPU / fwd latency:          12.5 TFLOPS\n"
    "step latency:                                                 500.0 us\n"
    "iter latency:                                                 200.0 ms\n"
    "samples/second:                                               80.0\n"
    "\n"
    "----------------------------- Aggregated Profile per GPU -----------------------------\n"
    "depth 0:\n"
    "    params      - {'Model': '336.25 M'}\n"
    "    fwd latency - {'Model': '79.0 ms'}\n";

constexpr const char* kNewer =
    "\n-------------------------- DeepSpeed Flops Profiler --------------------------\n"
    "Profile Summary at step 3:\n"
    "world size:                                                             4       \n"
    "data parallel size:                                                     4       \n"
    "batch size per GPU:                                                     8       \n"
    "params per GPU:                                                         2.14 B  \n"
    "params of model = params per GPU * mp_size:                             0       \n"
    "fwd MACs per GPU:                                                       17.5 TMACs\n"
    "fwd flops per GPU:                                                      35 T    \n"
    "fwd latency:                                                            1.5 s   \n"
    "fwd FLOPS per GPU = fwd flops per GPU / fwd latency:                    23.3 TFLOPS\n"
    "bwd latency:                                                            3 s     \n"
    "step latency:                                                           0.5 s   \n"
    "iter latency:                                                           5 s     \n"
    "FLOPS per GPU = 3 * fwd flops per GPU / iter latency:                   21.0 TFLOPS\n"
    "samples/second:                                                         6.4     \n"
    "\n----------------------------- Aggregated Profile per GPU -----------------------------\n";

Json config(int accumulation, int ranks) {
  return {{"train_micro_batch_size_per_gpu", 8},
          {"gradient_accumulation_steps", accumulation},
          {"train_batch_size", 8 * accumulation * ranks}};
}

Json metrics(const std::string& text, const Json& for_config) {
  return read_flops_report(text, "r.txt", for_config).metrics;
}

std::string error_in(const std::string& text) {
  return error_of([&] { read_flops_report(text, "r.txt", config(1, 1)); });
}

std::string without(std::string text, const std::string& line) {
  const size_t at = text.find("\n" + line) + 1;
  return text.erase(at, text.find('\n', at) + 1 - at);
}

std::string with(std::string report, const std::string& what, const std::string& instead) {
  const size_t at = report.find(what);
  return report.replace(at, what.size(), instead);
}

TEST(FlopsProfilerReport, ANumberThatNoMachineReachesIsLeftOut) {
  const Json config{{"train_batch_size", 8}};
  const TrialReport huge =
      read_flops_report(with(kOlder, "fwd flops per GPU:                                            1000.0 G",
                             "FLOPS per GPU: 1.7e296 TFLOPS"),
                        "f.txt", config);
  EXPECT_FALSE(huge.metrics.contains("FLOPS_per_gpu"));
  EXPECT_THAT(huge.warnings.at(0), HasSubstr("e+308, "));
  const std::string quick = with(
      with(kOlder, "iter latency:                                                 200.0 ms", "iter latency: 1e-300 s"),
      "fwd flops", "no");
  EXPECT_FALSE(read_flops_report(quick, "f.txt", config).metrics.contains("throughput"));
  const std::string params = with(kOlder, "672.5 M", "1e300");
  EXPECT_EQ(read_flops_model_info(params, "f.txt").metrics["num_params"], 336250000);
}

TEST(FlopsReport, TheOlderWordingIsRead) {
  const Json read = metrics(kOlder, config(1, 2));
  EXPECT_DOUBLE_EQ(read["forward"].get<double>(), 80e3);
  EXPECT_DOUBLE_EQ(read["backward"].get<double>(), 119.5e3);
  EXPECT_DOUBLE_EQ(read["step"].get<double>(), 500);
  EXPECT_DOUBLE_EQ(read["latency"].get<double>(), 200e3);
  EXPECT_DOUBLE_EQ(read["throughput"].get<double>(), 80);
  EXPECT_DOUBLE_EQ(read["FLOPS_per_gpu"].get<double>(), 3 * 1000e9 / 0.2);  // it does not say so itself
}

TEST(FlopsReport, TheNewerWordingIsRead) {
  const Json read = metrics(kNewer, config(1, 4));
  EXPECT_DOUBLE_EQ(read["latency"].get<double>(), 5e6);
  EXPECT_DOUBLE_EQ(read["FLOPS_per_gpu"].get<double>(), 21e12);
  EXPECT_DOUBLE_EQ(read["throughput"].get<double>(), 6.4);
  EXPECT_EQ(read_flops_report(kNewer, "r.txt", config(1, 4)).world_size, 4);
}

TEST(FlopsReport, LatencyIsThatOfAnOptimizerStep) {
  const Json read = metrics(kNewer, config(3, 4));
  EXPECT_DOUBLE_EQ(read["latency"].get<double>(), 15e6);
  EXPECT_DOUBLE_EQ(read["throughput"].get<double>(), 6.4);
  EXPECT_DOUBLE_EQ(read["FLOPS_per_gpu"].get<double>(), 21e12);
}

TEST(FlopsReport, GivesTheModelsSize) {
  EXPECT_EQ(read_flops_model_info(kOlder, "r.txt").metrics,
            Json::parse(R"({"num_params": 672500000, "trainable_num_params": 672500000, "world_size": 2})"));
  EXPECT_EQ(read_flops_model_info(kNewer, "r.txt").metrics["num_params"], 2'140'000'000);  // 0 is no model
}

TEST(FlopsReport, WarnsOfABatchSizeThatIsNotTheConfigurations) {
  Json other = config(1, 4);
  other["train_micro_batch_size_per_gpu"] = 2;
  const auto report = read_flops_report(kNewer, "r.txt", other);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_THAT(report.warnings[0], HasSubstr("batch size"));
  EXPECT_TRUE(read_flops_report(kNewer, "r.txt", config(1, 4)).warnings.empty());
}

TEST(FlopsReport, SaysWhatIsMissing) {
  const std::string torn(kNewer, 600);
  EXPECT_THAT(error_in(torn), AllOf(HasSubstr("r.txt"), HasSubstr("incomplete")));
  EXPECT_THAT(error_in(""), HasSubstr("incomplete"));
  EXPECT_THAT(error_in(without(kNewer, "bwd latency")), HasSubstr("wall_clock_breakdown"));
  EXPECT_THAT(error_in(without(kNewer, "fwd latency")), HasSubstr("fwd latency"));
  const std::string no_params = without(without(kNewer, "params per GPU"), "params of model");
  EXPECT_THAT(error_of([&] { read_flops_model_info(no_params, "r.txt"); }), HasSubstr("params per GPU"));
}

TEST(FlopsReport, SenselessValuesAreAsGoodAsMissing) {
  std::string text(kNewer);
  text.replace(text.find("1.5 s"), 5, "nan s");
  EXPECT_THAT(error_in(text), HasSubstr("fwd latency"));
  text.replace(text.find("nan s"), 5, "-15 s");
  EXPECT_THAT(error_in(text), HasSubstr("fwd latency"));
  text.replace(text.find("-15 s"), 5, "15 ly");
  EXPECT_THAT(error_in(text), HasSubstr("fwd latency"));
}

TEST(FlopsReport, IsAskedForByTheConfiguration) {
  EXPECT_TRUE(asks_for_flops_report(Json::parse(R"({"flops_profiler": {"enabled": true, "output_file": "f.txt"}})")));
  for (const char* no : {R"({})", R"({"flops_profiler": {"enabled": true}})", R"({"flops_profiler": 3})",
                         R"({"flops_profiler": {"enabled": true, "output_file": null}})",
                         R"({"flops_profiler": {"enabled": true, "output_file": ""}})",
                         R"({"flops_profiler": {"enabled": false, "output_file": "f.txt"}})"}) {
    EXPECT_FALSE(asks_for_flops_report(Json::parse(no))) << no;
  }
}

}  // namespace
}  // namespace dsat::host
