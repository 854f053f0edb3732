// The files of the tuning protocol.
// The keys are those that DeepSpeed's autotuner reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "dsat/base/ports.h"
#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGpt = "--model gpt --layers 2 --hidden 32 --heads 2 --seq 16 --vocab 64 --ranks 2";
constexpr double kGptParams = 32 * (64 + 16) + 2 * (12 * 32 * 32 + 13 * 32) + 32 * 66;

TEST(ProtocolTest, AModelInformationRunDescribesTheModelAndStops) {
  TrialProgram program;
  program.write_config({{"train_micro_batch_size_per_gpu", 4}, {"zero_optimization", {{"stage", 2}}}}, 3, 5,
                       /*model_info=*/true);
  const Ended ended = program.run(std::string(kGpt) + " --device-memory 64MiB");
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json info = program.result().value();
  EXPECT_EQ(info.at("num_params"), kGptParams);
  EXPECT_EQ(info.at("trainable_num_params"), kGptParams);
  EXPECT_EQ(info.at("largest_layer_params"), 12 * 32 * 32 + 13 * 32);
  EXPECT_EQ(info.at("rank"), 0);
  EXPECT_EQ(info.at("world_size"), 2);
  EXPECT_EQ(info.at("device_memory"), 64 * 1024 * 1024);
  EXPECT_GT(info.at("activation_mem_per_gpu"), 0);
  EXPECT_GT(info.at("peak_memory"), info.at("activation_mem_per_gpu"));
}

TEST(ProtocolTest, AMeasuredRunWritesMetricsThatAgreeWithEachOther) {
  const Json m = measure(kGpt, {{"train_micro_batch_size_per_gpu", 3}, {"gradient_accumulation_steps", 2}}, 2, 4);
  const double latency = m.at("latency");
  for (const char* key : {"fwd", "bwd", "step"}) EXPECT_GT(m.at(key), 0.0) << key;
  EXPECT_NEAR(latency, (m.at("fwd").get<double>() + m.at("bwd").get<double>() + m.at("step").get<double>()) * 2, 1e-3);
  EXPECT_NEAR(m.at("throughput").get<double>() * latency, 3 * 2 * 2 * 1e6, 1.0);
  EXPECT_GE(m.at("wall_latency"), latency);
  EXPECT_EQ(m.at("samples"), 3 * 3 * 2 * 2);
  EXPECT_EQ(m.at("losses").size(), 5u);
  EXPECT_EQ(m.at("world_size"), 2);
  EXPECT_TRUE(m.at("device_memory").is_null());
  EXPECT_GT(m.at("peak_memory"), m.at("model_state_bytes"));
}

TEST(ProtocolTest, FlopsAreThoseOfTheMatrixProducts) {
  const int64_t layers = 3, hidden = 64, batch = 4;
  const Json m = measure("--model mlp --layers 3 --hidden 64", {{"train_micro_batch_size_per_gpu", batch}});
  // The first layer needs no gradient of its input.
  const double products = static_cast<double>(3 * layers - 1);
  const double expected = products * 2 * static_cast<double>(batch * hidden * hidden);
  EXPECT_NEAR(m.at("FLOPS_per_gpu").get<double>() * m.at("latency").get<double>() / 1e6, expected, 1e-3 * expected);
}

TEST(ProtocolTest, AnUntrainedModelGuessesEvenly) {
  const Json m = measure(kGpt, {{"train_micro_batch_size_per_gpu", 8}}, 0, 0);
  EXPECT_NEAR(m.at("losses")[0].get<double>(), std::log(64.0), 0.1);
}

TEST(ProtocolTest, ARunThatEndsBeforeTheWindowWritesNothingAndSaysSo) {
  TrialProgram program;
  program.write_config({{"train_micro_batch_size_per_gpu", 1}});
  const Ended ended = program.run(std::string(kGpt) + " --steps 2");
  EXPECT_EQ(ended.status, 0);
  EXPECT_FALSE(program.result().has_value());
  EXPECT_THAT(ended.err, HasSubstr("nothing was measured"));
}

TEST(ProtocolTest, WithoutATuningSectionItTrainsAndPrintsLosses) {
  TrialProgram program;
  program.write_raw_config(R"({"train_batch_size": 4, "steps_per_print": 1})");
  const Ended ended = program.run("--model mlp --layers 2 --hidden 32 --ranks 2 --steps 3 --deepspeed");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_THAT(ended.out, HasSubstr("step 3/3  loss"));
  EXPECT_THAT(ended.out, HasSubstr("2112 parameters"));
}

TEST(ProtocolTest, ThePrintedLossIsThatOfTheModel) {
  TrialProgram program;
  program.write_raw_config(R"({"train_micro_batch_size_per_gpu": 8, "steps_per_print": 1})");
  const Ended ended = program.run(std::string(kGpt) + " --steps 1 --deepspeed");
  const size_t at = ended.out.find("step 1/1  loss ");
  ASSERT_NE(at, std::string::npos) << ended.out << ended.err;
  EXPECT_NEAR(std::stod(ended.out.substr(at + 15)), std::log(64.0), 0.1);
}

TEST(ProtocolTest, RanksFromTheEnvironmentTrainTogether) {
  TrialProgram program;
  program.write_config({{"train_micro_batch_size_per_gpu", 2}, {"zero_optimization", {{"stage", 2}}}}, 1, 2);
  const std::string options = "--model mlp --layers 2 --hidden 32";
  const std::string port = "MASTER_PORT=" + std::to_string(free_port());
  const auto environment = [&](int rank) {
    return std::vector<std::string>{"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", port};
  };
  const pid_t first = program.start(options, environment(0)), second = program.start(options, environment(1));
  const Ended ended = program.wait(first);
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(program.wait(second).status, 0);
  EXPECT_EQ(program.result().value().at("losses"),
            measure(options + " --ranks 2", {{"train_micro_batch_size_per_gpu", 2}}).at("losses"));
}

TEST(ProtocolTest, WhatIsNotObeyedIsReportedOnce) {
  TrialProgram program;
  program.write_raw_config(R"({"train_micro_batch_size_per_gpu": 1, "scheduler": {"params": {}}})");
  const Ended ended = program.run("--model mlp --layers 1 --hidden 8 --ranks 2 --steps 1");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err, ended.last_error_line() + "\n");
  EXPECT_THAT(ended.err, HasSubstr("scheduler has no type: the learning rate is constant"));
}

}  // namespace
}  // namespace dsat::trainer::testing
