// Profiles and a study's observations, as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "dsat/cost/memory.h"

namespace dsat::cost {
namespace {

Json profile() {
  return Json::parse(R"({"schema": 1, "num_params": 1000, "trainable_num_params": 800, "device_memory_bytes": 5e8,
    "world_size": 2, "activation_bytes_per_sample": {"value": 20, "low": 10, "high": 30},
    "fixed_bytes": {"value": 1, "low": 0, "high": 2}, "stages": [], "trials": [0]})");
}

TEST(MemoryJsonTest, AnInfiniteBoundIsNull) {
  EXPECT_EQ(to_json(Interval{2, 1, 3}), Json::parse(R"({"value": 2.0, "low": 1.0, "high": 3.0})"));
  EXPECT_TRUE(to_json(Interval{0, 0, std::numeric_limits<double>::infinity()})["high"].is_null());
}

TEST(MemoryJsonTest, ReadsAProfile) {
  const Inputs inputs = inputs_from_profile(profile());
  EXPECT_EQ(inputs.size.num_params, 1000);
  EXPECT_EQ(inputs.size.trainable_num_params, 800);
  EXPECT_EQ(inputs.device_memory_bytes, 5e8);
  ASSERT_TRUE(inputs.activation_bytes_per_sample);
  EXPECT_EQ(inputs.activation_bytes_per_sample->high, 30);
  EXPECT_EQ(inputs.size.largest_layer_params, 0) << "only some engines tell it";
  Json of_layers = profile();
  of_layers.update({{"largest_layer_params", 50}, {"params_up_to_1e3", 7}});
  EXPECT_EQ(inputs_from_profile(of_layers).size.small_params[0], 7);
  EXPECT_EQ(inputs_from_profile(of_layers).size.small_params[1], 0);
}

TEST(MemoryJsonTest, AProfileWithoutTheDevicesMemoryLeavesItUnknown) {
  Json json = profile();
  json["device_memory_bytes"] = nullptr;
  json.erase("trainable_num_params");
  const Inputs inputs = inputs_from_profile(json);
  EXPECT_FALSE(inputs.device_memory_bytes);
  EXPECT_EQ(inputs.size.trainable_num_params, 1000);
}

TEST(MemoryJsonTest, AProfilesActivationsAreWhatTheFitStartsFrom) {
  Json json = profile();
  json["activation_bytes_per_sample"] = {{"value", 4e6}, {"low", 3.9e6}, {"high", 4.1e6}};
  const double start = activation_bytes_per_sample(fit_memory(inputs_from_profile(json), {})).value;
  EXPECT_NEAR(start, 1.2 * 4e6, 1) << "a training step holds more than a forward pass";
}

TEST(MemoryJsonTest, WrongProfilesAreRefused) {
  EXPECT_THROW(inputs_from_profile(nullptr), Error);
  EXPECT_THROW(inputs_from_profile(Json::array()), Error);
  Json json = profile();
  json.erase("num_params");
  EXPECT_THROW(inputs_from_profile(json), Error);
  json = profile();
  json["num_params"] = "many";
  EXPECT_THROW(inputs_from_profile(json), Error);
  json = profile();
  json["activation_bytes_per_sample"] = 20;
  EXPECT_THROW(inputs_from_profile(json), Error);
}

TEST(MemoryJsonTest, KeepsTheTrialsThatTellOfMemory) {
  const std::vector<Observation> observations = observations_from_json(Json::parse(R"([
    {"trial": 0, "config": {}, "outcome": "completed", "peak_bytes": 7,
     "metrics": {"num_params": 1000, "activation_mem_per_gpu": 3}},
    {"trial": 1, "config": {"train_micro_batch_size_per_gpu": 4}, "outcome": "completed", "peak_bytes": 100,
     "metrics": {"latency": 5}},
    {"trial": 2, "config": {"train_micro_batch_size_per_gpu": 64}, "outcome": "out_of_memory", "peak_bytes": null,
     "metrics": null},
    {"trial": 3, "config": {"train_micro_batch_size_per_gpu": 8}, "outcome": "failed", "peak_bytes": 50,
     "metrics": null},
    {"trial": 4, "config": {}, "outcome": "completed", "peak_bytes": 0, "metrics": {"latency": 5}}])"),
                                                                       2);
  ASSERT_EQ(observations.size(), 3u);
  EXPECT_EQ(observations[0].setup.micro_batch, 4);
  EXPECT_EQ(observations[0].setup.data_parallel_size, 2);
  EXPECT_EQ(observations[0].peak_bytes, 100);
  EXPECT_TRUE(observations[1].out_of_memory);
  EXPECT_FALSE(observations[1].peak_bytes);
  EXPECT_FALSE(observations[2].peak_bytes) << "0 means unknown";
}

TEST(MemoryJsonTest, WrongObservationsAreRefused) {
  EXPECT_TRUE(observations_from_json(nullptr, 1).empty());
  EXPECT_THROW(observations_from_json(Json::object(), 1), Error);
  EXPECT_THROW(observations_from_json(Json::parse("[1]"), 1), Error);
  EXPECT_THROW(observations_from_json(Json::parse(R"([{"outcome": "completed"}])"), 1), Error);
  EXPECT_THROW(
      observations_from_json(Json::parse(R"([{"config": {}, "outcome": "completed", "peak_bytes": "much"}])"), 1),
      Error);
}

}  // namespace
}  // namespace dsat::cost
