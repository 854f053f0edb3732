// The profiler's schedule and the traces that it writes.
// Real operations of LibTorch are recorded.
#include "dsat/trainer/profiler.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device/budget_allocator.h"
#include "dsat/error.h"
#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ProfilerTest : public TempDirTest {
 protected:
  // Steps of one matrix product each.
  void train(Profiler& profiler, int steps) const {
    for (int i = 0; i < steps; ++i) {
      at::mm(at::ones({2, 2}), at::ones({2, 2}));
      profiler.step();
    }
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    if (fs::exists(folder_)) {
      for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  int64_t products_in(const std::string& name) const {
    const Json trace = Json::parse(std::ifstream(folder_ / name));
    return std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(), [](const Json& event) {
      return event["name"] == "aten::mm" && event["ph"] == "X" && event["dur"] >= 0 && event["ts"] > 0;
    });
  }
  fs::path folder_ = dir() / "traces";  // the profiler makes it
};

TEST_F(ProfilerTest, WritesATraceOfTheActiveSteps) {
  Profiler profiler(folder_, "rank0", {1, 1, 2, 1});
  train(profiler, 10);
  EXPECT_THAT(files(), ElementsAre("rank0.step3.trace.json"));
  EXPECT_EQ(products_in("rank0.step3.trace.json"), 2);
}

TEST_F(ProfilerTest, RepeatsItsSchedule) {
  Profiler profiler(folder_, "rank0", {0, 1, 1, 0});
  train(profiler, 5);
  EXPECT_THAT(files(), ElementsAre("rank0.step1.trace.json", "rank0.step3.trace.json"));
  EXPECT_EQ(products_in("rank0.step3.trace.json"), 1);
}

TEST_F(ProfilerTest, WritesOneTraceACycleWithoutPauses) {
  Profiler profiler(folder_, "rank0", {0, 0, 2, 2});
  train(profiler, 6);
  EXPECT_THAT(files(), ElementsAre("rank0.step1.trace.json", "rank0.step3.trace.json"));
  EXPECT_EQ(products_in("rank0.step3.trace.json"), 2);
}

TEST_F(ProfilerTest, TracesTheMemoryOfTheDevice) {
  set_device_memory(install_budget(std::nullopt));
  ProfilerOptions options;
  options.profile_memory = true;
  Profiler profiler(folder_, "rank0", {0, 0, 1, 1}, options);
  const at::Tensor kept = at::ones({1000});  // of 4,000 bytes
  profiler.step();
  const Json trace = Json::parse(std::ifstream(folder_ / "rank0.step0.trace.json"));
  int64_t largest = 0, highest = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") largest = std::max(largest, event["args"]["bytes"].get<int64_t>());
    if (event["ph"] == "C" && event["name"] == "memory")
      highest = std::max(highest, event["args"]["bytes"].get<int64_t>());
  }
  EXPECT_GE(largest, 4000);
  EXPECT_GE(highest, largest);
}

TEST_F(ProfilerTest, RefusesActivitiesThatItDoesNotRecord) {
  ProfilerOptions options;
  options.activities = {ProfilerActivity::cpu, ProfilerActivity::cuda};
  EXPECT_THAT(error_of([&] { Profiler(folder_, "x", {0, 0, 1, 1}, options); }), HasSubstr("nsys profile"));
  options.activities = {};
  EXPECT_THAT(error_of([&] { Profiler(folder_, "x", {0, 0, 1, 1}, options); }), HasSubstr("no activities"));
}

TEST_F(ProfilerTest, RefusesScheduleThatRecordsNothing) {
  EXPECT_THROW(Profiler(folder_, "x", {1, 1, 0, 0}), Error);
  EXPECT_THROW(Profiler(folder_, "x", {-1, 1, 1, 0}), Error);
}

}  // namespace
}  // namespace dsat::trainer
