// The built-in models as pipelines: the same training, cut over ranks; its files, its memory, its failures.
// Losses are compared with those of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <ostream>

#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr const char* kGpt = "--model gpt --layers 3 --hidden 64 --heads 2 --seq 32 --vocab 128";
constexpr const char* kResnet = "--model resnet --depth 8 --image 16";

Json config(int zero_stage, int64_t accumulation, int stages = 1) {
  return {{"train_micro_batch_size_per_gpu", 2},
          {"gradient_accumulation_steps", accumulation},
          {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-3}, {"weight_decay", 0.01}}}}},
          {"gradient_clipping", 1.0},
          {"pipeline", {{"stages", stages}}},
          {"zero_optimization", {{"stage", zero_stage}}}};
}

std::vector<double> losses_of(const Json& result) { return result.at("losses").get<std::vector<double>>(); }

void expect_losses(const std::vector<double>& losses, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(losses.size(), expected.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], tolerance * std::abs(expected[i])) << "step " << i;
  }
}

struct Case {
  const char* name;
  const char* model;
  int ranks, zero_stage;
  int64_t accumulation;
  bool bf16;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class PipelineLosses : public ::testing::TestWithParam<Case> {};

// The same micro batches one after the other, in fp32. In bf16 each product is rounded to 8 bits, 2^-9 of it; the loss
// is a mean of many, and ten small steps hardly move it.
TEST_P(PipelineLosses, AsInOneProcess) {
  const Case& c = GetParam();
  const auto run = [&](int ranks, Json config) {
    return losses_of(measure(std::string(c.model) + " --ranks " + std::to_string(ranks), config, 3, 9));
  };
  const std::vector<double> expected = run(1, config(0, c.accumulation * c.ranks / 2));
  Json pipeline = config(c.zero_stage, c.accumulation, 2);
  pipeline["bf16"]["enabled"] = c.bf16;
  expect_losses(run(c.ranks, pipeline), expected, c.bf16 ? 0.01 : 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Sample, PipelineLosses,
                         ::testing::Values(Case{"GptOnTwoRanks", kGpt, 2, 0, 3, false},
                                           Case{"GptOnFourRanks", kGpt, 4, 1, 3, false},
                                           Case{"GptOnFourRanksInBf16", kGpt, 4, 1, 1, true},
                                           Case{"ResnetOnTwoRanks", kResnet, 2, 1, 1, false},
                                           Case{"ResnetOnFourRanks", kResnet, 4, 0, 1, false},
                                           Case{"ResnetOnTwoRanksInBf16", kResnet, 2, 0, 3, true}),
                         [](const auto& info) { return info.param.name; });

// Its rate of each parameter depends on that parameter's own norms, whichever stage has it.
TEST(PipelineTrial, LambUpdatesEachStagesParameters) {
  Json whole = config(0, 2), pipeline = config(1, 2, 2);
  for (Json* c : {&whole, &pipeline}) (*c)["optimizer"] = {{"type", "Lamb"}, {"params", {{"lr", 1e-2}}}};
  expect_losses(losses_of(measure(std::string(kGpt) + " --ranks 2", pipeline, 3, 6)),
                losses_of(measure(kGpt, whole, 3, 6)), 1e-5);
}

TEST(PipelineTrial, TheOptionDoesWhatTheKeyDoes) {
  TrialProgram program;
  Json c = config(1, 2);
  c.erase("pipeline");
  program.write_raw_config(c.dump());
  const Ended ended = program.run(std::string(kGpt) + " --ranks 2 --pipeline-stages 2 --steps 2");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr(" in 2 stages, "));
}

TEST(PipelineTrial, MetricsAreThoseOfTheWholeTraining) {
  const Json result = measure(std::string(kGpt) + " --ranks 4", config(1, 3, 2), 1, 2);
  const double latency = result.at("latency").get<double>();
  EXPECT_EQ(result.at("world_size"), 4);           // the host divides it by pipeline.stages
  EXPECT_EQ(result.at("samples"), 2 * 3 * 2 * 2);  // micro batch x accumulation x data-parallel size x steps
  EXPECT_NEAR(result.at("throughput").get<double>(), 12e6 / latency, 1e-6 * 12e6 / latency);
  EXPECT_GT(result.at("FLOPS_per_gpu").get<double>(), 0);
  EXPECT_LE(latency, result.at("wall_latency").get<double>());
}

// Half of the layers each, by parameters: states are half of the model's, plus what a cut between layers leaves uneven.
TEST(PipelineTrial, AStageHoldsItsPartOfTheModelOnly) {
  const std::string mlp = "--model mlp --layers 4 --hidden 128 --ranks 2";
  const auto states = [&](int stages) {
    return measure(mlp, config(0, 2, stages)).at("model_state_bytes").get<double>();
  };
  const double whole = 16.0 * 4 * (128 * 128 + 128);
  EXPECT_NEAR(states(1), whole, 0.02 * whole);
  EXPECT_NEAR(states(2), whole / 2, 0.02 * whole / 2);
}

TEST(PipelineTrial, RecomputingLowersThePeakAndKeepsTheLosses) {
  const std::string options = std::string(kGpt) + " --layers 6 --ranks 2";
  Json c = config(0, 3, 2);
  c["train_micro_batch_size_per_gpu"] = 8;
  const Json kept = measure(options, c);
  const Json recomputed = measure(options + " --activation-checkpointing", c);
  EXPECT_EQ(losses_of(kept), losses_of(recomputed));
  EXPECT_LT(recomputed.at("peak_memory").get<double>(), 0.8 * kept.at("peak_memory").get<double>());
  c["pipeline"]["activation_checkpoint_interval"] = 1;
  EXPECT_EQ(losses_of(measure(options, c)), losses_of(kept));
}

// The activations that it reports are what a rank holds at once, so that the peak follows.
TEST(PipelineTrial, ModelInformationPredictsThePeak) {
  TrialProgram program;
  Json c = config(0, 4, 2);
  c["train_micro_batch_size_per_gpu"] = 8;
  program.write_config(c, 1, 2, /*model_info=*/true);
  ASSERT_EQ(program.run(std::string(kGpt) + " --ranks 2").status, 0);
  const Json info = program.result().value();
  EXPECT_EQ(info.at("num_params"), 64 * (128 + 32) + 3 * (12 * 64 * 64 + 13 * 64) + 64 * 130);
  EXPECT_EQ(info.at("world_size"), 2);
  const Json trained = measure(std::string(kGpt) + " --ranks 2", c);
  const double activations = info.at("activation_mem_per_gpu").get<double>();
  const double beyond = trained.at("peak_memory").get<double>() - trained.at("model_state_bytes").get<double>();
  EXPECT_GT(beyond, 0.9 * activations);
  EXPECT_LT(beyond, 1.5 * activations);
}

TEST(PipelineTrial, AStageThatExceedsItsMemoryIsTheCause) {
  TrialProgram program;
  program.write_config(config(0, 4, 2));
  const Ended ended = program.run(std::string(kGpt) + " --ranks 2 --device-memory 1500KiB");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.last_error_line(),
              ContainsRegex("^dsat-trial: OutOfMemoryError: out of memory.* \\(rank [01]\\)$"));
  EXPECT_FALSE(program.result().has_value());
}

TEST(PipelineTrial, AKilledRankOfAnyStageEndsTheOthers) {
  for (const int victim : {0, 3}) {
    TrialProgram program;
    program.write_raw_config(config(1, 2, 2).dump());
    const pid_t pid = program.start(std::string(kGpt) + " --ranks 4 --steps 1000000000");
    ASSERT_TRUE(eventually([&] { return children_of(pid).size() == 4; }));
    const std::vector<pid_t> ranks = children_of(pid);
    ::kill(ranks[static_cast<size_t>(victim)], SIGKILL);
    const Ended ended = program.wait(pid);
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.last_error_line(), AllOf(HasSubstr("rank " + std::to_string(victim)), HasSubstr("signal 9")));
    for (const pid_t rank : ranks) EXPECT_FALSE(is_running(rank));
  }
}

class PipelineUsage : public ::testing::TestWithParam<BadInput> {};

TEST_P(PipelineUsage, IsRefusedInOneLine) { expect_refused(GetParam()); }

constexpr const char* kTwoStages = R"({"train_micro_batch_size_per_gpu": 1, "pipeline": {"stages": 2}})";

INSTANTIATE_TEST_SUITE_P(
    Inputs, PipelineUsage,
    ::testing::Values(BadInput{"--ranks 3", kTwoStages, "the 3 ranks"}, BadInput{"", kTwoStages, "the 1 ranks"},
                      BadInput{"--ranks 2 --pipeline-stages 1", kTwoStages, "--pipeline-stages 1 contradicts"},
                      BadInput{"--ranks 2 --pipeline-stages 0", kTwoStages, "--pipeline-stages 0: "},
                      BadInput{"--ranks 2 --model mlp --layers 1", kTwoStages, "has 1 layers"},
                      BadInput{"--ranks 2", R"({"pipeline": {"stages": 2}, "zero_optimization": {"stage": 2}})",
                               "pipeline parallelism"},
                      BadInput{"--ranks 2", R"({"pipeline": {"stages": 2}, "zero_optimization": {"stage": 3}})",
                               "pipeline parallelism"},
                      BadInput{"--ranks 2 --pipeline-stages 2", R"({"zero_optimization": {"stage": 3}})",
                               "pipeline parallelism"},
                      BadInput{"--ranks 2", R"({"pipeline": {"stages": 2, "partition": "type:Linear"}})",
                               "\"parameters\" and \"uniform\""},
                      BadInput{"--ranks 2", R"({"pipeline": {"stages": "two"}})", "pipeline.stages"},
                      BadInput{"--ranks 4", R"({"pipeline": {"stages": 2}, "train_batch_size": 4,
                  "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1})",
                               "train_batch_size"}));

}  // namespace
}  // namespace dsat::trainer::testing
