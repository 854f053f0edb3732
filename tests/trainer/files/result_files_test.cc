#include "files/result_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace dsat::trainer {
namespace {

TEST(ResultFilesTest, MetricsAreDerivedAsDeepSpeedDoes) {
  Metrics m;
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
  EXPECT_TRUE(json.at("device_memory").is_null());
  EXPECT_EQ(Json::parse(json.dump()).at("losses")[0].get<double>(), 1.0 / 3);
}

TEST(ResultFilesTest, AFileIsReplacedWholeAndNothingElseIsLeft) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("dsat-result-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::filesystem::path file = folder / "metrics.json";
  std::ofstream(file) << "torn";
  write_atomically(file.string(), Json{{"fwd", 1}});
  std::ifstream in(file);
  EXPECT_EQ(Json::parse(in).at("fwd"), 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(ResultFilesTest, AFailureNamesTheFile) {
  try {
    write_atomically("/nowhere/at/all.json", Json::object());
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot write /nowhere/at/all.json: open: No such file or directory");
  }
}

}  // namespace
}  // namespace dsat::trainer
