// Values of a trial as a person reads them.
#include "terminal/format.h"

#include <gtest/gtest.h>

namespace dsat::cli {
namespace {

TEST(FormatCount, HasThreeDigitsAndAPrefix) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(12), "12");
  EXPECT_EQ(format_count(999.6), "1 k");
  EXPECT_EQ(format_count(124e6), "124 M");
  EXPECT_EQ(format_count(7.5e9), "7.5 G");
}

TEST(FormatMetric, HasTheUnitOfTheMetric) {
  EXPECT_EQ(format_metric("FLOPS_per_gpu", 12.34e12), "12.3 TFLOP/s");
  EXPECT_EQ(format_metric("FLOPS_per_gpu", 12.0), "12 FLOP/s");
  EXPECT_EQ(format_metric("throughput", 456.0), "456 samples/s");
  EXPECT_EQ(format_metric("latency", 7890.0), "7.89 ms");
  EXPECT_EQ(format_metric("forward", 2.5e6), "2.5 s");
}

TEST(FormatMetric, HasNoExponentHoweverLarge) {
  EXPECT_EQ(format_metric("latency", 999.4e3), "999 ms");
  EXPECT_EQ(format_metric("latency", 999.6e3), "0.9996 s");
  EXPECT_EQ(format_metric("latency", 12'345.6e6), "12346 s");
  EXPECT_EQ(format_metric("throughput", 999.97), "1000 samples/s");
  EXPECT_EQ(format_metric("throughput", 12'345.6), "12346 samples/s");
}

TEST(FormatMetric, IsADashWhereThereIsNone) {
  EXPECT_EQ(format_metric("latency", Json()), "-");
  EXPECT_EQ(format_metric("latency", Json::object()), "-");
  EXPECT_EQ(format_metric("latency", Json{{"latency", nullptr}}), "-");
  EXPECT_EQ(format_metric("latency", Json{{"latency", 1000}}), "1 ms");
}

TEST(Configuration, TellsStageAndMicroBatchIfItHasThem) {
  const Json config{{"zero_optimization", {{"stage", 2}}}, {"train_micro_batch_size_per_gpu", 8}};
  EXPECT_EQ(or_dash(zero_stage_of(config)), "2");
  EXPECT_EQ(or_dash(micro_batch_of(config)), "8");
  EXPECT_EQ(or_dash(zero_stage_of(Json::object())), "-");
  EXPECT_EQ(or_dash(micro_batch_of(Json{{"train_micro_batch_size_per_gpu", "auto"}})), "-");
  EXPECT_EQ(or_dash(zero_stage_of(Json())), "-");
}

}  // namespace
}  // namespace dsat::cli
