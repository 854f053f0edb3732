// The update is one and the same in every ZeRO stage: optimizers that need norms, schedules, loss scaling, offload.
// Losses of every stage are compared with those of stage 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

const char* const kModel = "--model gpt --layers 2 --hidden 64 --heads 2 --seq 32 --vocab 128 --ranks ";

Json config(int stage, int64_t accumulation = 1) {
  return {{"train_micro_batch_size_per_gpu", 2},
          {"gradient_accumulation_steps", accumulation},
          {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 1e-3}}}}},
          {"zero_optimization", {{"stage", stage}, {"reduce_bucket_size", 20000}}}};
}

Json offloaded(Json config) {
  config["zero_optimization"]["offload_optimizer"]["device"] = "cpu";
  return config;
}

std::vector<double> losses_of(const Json& result) { return result.at("losses").get<std::vector<double>>(); }

void expect_near(const std::vector<double>& losses, const std::vector<double>& expected, double relative,
                 const std::string& what) {
  ASSERT_EQ(losses.size(), expected.size()) << what;
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], relative * std::abs(expected[i])) << what << ", step " << i;
  }
}

// A parameter that is spread over the ranks has the length of the whole.
TEST(UpdateTest, LambInEveryStage) {
  const auto with = [](int stage, int64_t accumulation) {
    Json c = config(stage, accumulation);
    c["optimizer"] = {{"type", "Lamb"}, {"params", {{"lr", 0.02}, {"weight_decay", 0.01}}}};
    return c;
  };
  const std::vector<double> expected = losses_of(measure(kModel + std::string("1"), with(0, 2), 3, 7));
  EXPECT_LT(expected.back(), 0.999 * expected.front());
  for (int stage = 0; stage <= 3; ++stage) {
    const Json result = measure(kModel + std::string("2"), with(stage, 1), 3, 7);
    expect_near(losses_of(result), expected, 1e-5, "stage " + std::to_string(stage));
  }
}

TEST(UpdateTest, AScheduleSetsTheRateOfEachUpdate) {
  const auto with = [](double low, double high) {
    Json c = config(1);
    c["scheduler"] = {
        {"type", "WarmupLR"},
        {"params", {{"warmup_min_lr", low}, {"warmup_max_lr", high}, {"warmup_num_steps", 3}, {"warmup_type", "log"}}}};
    return losses_of(measure(kModel + std::string("1"), c, 1, 4));
  };
  const std::vector<double> constant = losses_of(measure(kModel + std::string("1"), config(1), 1, 4));
  EXPECT_EQ(with(1e-3, 1e-3), constant);
  const std::vector<double> rising = with(0, 1e-3);
  // The first two updates have the rate 0: what is seen of the third batch is what the first update was not.
  EXPECT_EQ(rising[0], constant[0]);
  EXPECT_NE(rising[1], constant[1]);
  EXPECT_EQ(with(0, 5e-3)[2], rising[2]);
  EXPECT_NE(with(0, 5e-3)[3], rising[3]);
}

// 2^127 is more than a gradient can be multiplied by: updates are skipped until the scale has come down.
TEST(UpdateTest, OverflowSkipsTheUpdateOnAllRanks) {
  for (int stage : {0, 3}) {
    const std::string what = "stage " + std::to_string(stage);
    Json plain = config(stage), scaled = config(stage);
    plain["bf16"]["enabled"] = true;
    scaled["fp16"] = {{"enabled", true}, {"initial_scale_power", 10}};
    const Json expected = measure(kModel + std::string("2"), plain, 1, 3);
    const Json calm = measure(kModel + std::string("2 --fp16-as-bf16"), scaled, 1, 3);
    EXPECT_EQ(calm.at("precision"), "bf16 in place of fp16");
    EXPECT_EQ(expected.at("precision"), "bf16");
    EXPECT_EQ(calm.at("skipped_steps"), 0);
    // A scale is a power of two: only what was rounded to zero differs.
    expect_near(losses_of(calm), losses_of(expected), 1e-3, what);
    scaled["fp16"] = {{"enabled", true}, {"initial_scale_power", 127}, {"hysteresis", 1}};
    const Json stormy = measure(kModel + std::string("2 --fp16-as-bf16"), scaled, 1, 11);
    EXPECT_GE(stormy.at("skipped_steps"), 1) << what;
    EXPECT_LT(stormy.at("skipped_steps"), 12) << what;
    for (double loss : losses_of(stormy)) EXPECT_TRUE(std::isfinite(loss)) << what;
  }
}

TEST(UpdateTest, HalfPrecisionIsRefusedWithoutTheOption) {
  TrialProgram program;
  program.write_raw_config(R"({"fp16": {"enabled": true}})");
  const Ended ended = program.run("--model mlp");
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.last_error_line(), ::testing::HasSubstr("add --fp16-as-bf16"));
}

// Bytes a parameter and rank that leave the device, and that the host then holds.
struct Moved {
  double from_device, to_host;
};

Moved moved(int stage, bool bf16, double ranks) {
  const double w = bf16 ? 2 : 4, master = bf16 ? 4 : 0;
  const double gradient_shard = w / ranks;
  return {(master + 8) / ranks + (stage >= 2 ? gradient_shard : 0), (4 + 8) / ranks + gradient_shard};
}

TEST(OffloadTest, MovesTheStatesToTheHostAndChangesNothingElse) {
  for (int stage : {1, 2, 3}) {
    const bool bf16 = stage != 2;
    const std::string what = "stage " + std::to_string(stage) + (bf16 ? " bf16" : " fp32");
    Json c = config(stage, 2);
    c["gradient_clipping"] = 1.0;
    c["bf16"]["enabled"] = bf16;
    const Json kept = measure(kModel + std::string("2"), c, 1, 3);
    const Json away = measure(kModel + std::string("2"), offloaded(c), 1, 3);
    EXPECT_EQ(losses_of(away), losses_of(kept)) << what;
    const auto bytes = [](const Json& result, const char* key) { return result.at(key).get<double>(); };
    constexpr double kParameters = 118528;
    const Moved expected = moved(stage, bf16, 2);
    EXPECT_EQ(bytes(kept, "host_memory_bytes"), 0) << what;
    EXPECT_NEAR(bytes(away, "host_memory_bytes") / kParameters, expected.to_host, 0.02 * expected.to_host) << what;
    for (const char* key : {"model_state_bytes", "peak_memory"}) {
      const double saved = (bytes(kept, key) - bytes(away, key)) / kParameters;
      EXPECT_NEAR(saved, expected.from_device, 0.02 * expected.from_device) << what << ", " << key;
    }
  }
}

}  // namespace
}  // namespace dsat::trainer::testing
