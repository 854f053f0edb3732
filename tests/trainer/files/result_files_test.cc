// The files of the tuning protocol have DeepSpeed's keys and units.
// A failure leaves the old file and no other.
#include "files/result_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::trainer {
namespace {

TEST(ResultFilesTest, MetricsAreDerivedAsDeepSpeedDoes) {
  TuningMetrics m;
  m.forward_us = 100;
  m.backward_us = 200;
  m.step_us = 50;
  m.accumulation = 4;
  m.train_batch = 32;
  m.flops_per_micro_step = 7e6;
  m.losses = {1.0 / 3};
  const Json json = to_json(m);
  EXPECT_EQ(json.at("latency"), 1400.0);
  EXPECT_DOUBLE_EQ(json.at("throughput").get<double>(), 32e6 / 1400);
  EXPECT_DOUBLE_EQ(json.at("FLOPS_per_gpu").get<double>(), 4 * 7e6 * 1e6 / 1400);
  EXPECT_EQ(json.at("rank"), 0);
  EXPECT_TRUE(json.at("device_memory").is_null());
  EXPECT_EQ(Json::parse(json.dump()).at("losses")[0].get<double>(), 1.0 / 3);
}

TEST(ResultFilesTest, TheLatencyOfSeveralEnginesIsFromEndToEnd) {
  TuningMetrics m;
  m.forward_us = m.backward_us = m.step_us = 100;
  m.train_batch = 8;
  m.wall_latency_us = 800;
  EXPECT_EQ(to_json(m).at("latency"), 300.0);
  m.engines = 2;
  EXPECT_EQ(to_json(m).at("latency"), 800.0);
  EXPECT_DOUBLE_EQ(to_json(m).at("throughput").get<double>(), 8e6 / 800);
}

TEST(ResultFilesTest, FrozenParametersArePartOfTheModelButNotTrained) {
  ModelInfo info;
  info.num_params = 20;
  info.num_frozen = 3;
  const Json json = to_json(info);
  EXPECT_EQ(json.at("num_params"), 23);
  EXPECT_EQ(json.at("trainable_num_params"), 20);
}

TEST(ResultFilesTest, SmallParametersAreCountedBySize) {
  ModelInfo info;
  for (const int64_t elements : {1000, 1001, 2'000'000}) info.count_small(elements);
  const Json json = to_json(info);
  EXPECT_EQ(json.at("params_up_to_1e3"), 1000);
  EXPECT_EQ(json.at("params_up_to_1e4"), 2001);
  EXPECT_EQ(json.at("params_up_to_1e6"), 2001);
  EXPECT_EQ(json.at("params_up_to_1e7"), 2'002'001);
}

TEST(ResultFilesTest, AFileIsReplacedWholeAndNothingElseIsLeft) {
  const TempDir folder;
  const std::filesystem::path file = folder.path() / "metrics.json";
  write_text(file, "torn");
  write_atomically(file.string(), Json{{"fwd", 1}});
  EXPECT_EQ(Json::parse(read_text(file)).at("fwd"), 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(ResultFilesTest, AFailureNamesTheFile) {
  EXPECT_THAT(error_of([] { write_atomically("/nowhere/at/all.json", Json::object()); }, DSAT_INTERNAL),
              ::testing::HasSubstr("/nowhere/at/all.json: No such file"));
}

}  // namespace
}  // namespace dsat::trainer
