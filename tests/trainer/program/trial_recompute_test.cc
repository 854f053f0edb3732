// Recomputation of activations: the same training in less memory, in every stage.
// Peaks of two micro batches are compared with and without it, and the difference with what a profile has predicted.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

constexpr const char* kSwitch = " --activation-checkpointing";

struct Case {
  const char* name;
  const char* options;
  int stage;
  bool bf16;
  double most_of_activations;  // share of the activations of a sample that may be left
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Two micro steps, so that gradients accumulate; small buckets, so that they travel in many pieces.
Json config(const Case& c, int64_t micro_batch) {
  Json json{{"train_micro_batch_size_per_gpu", micro_batch},
            {"gradient_accumulation_steps", 2},
            {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 1e-3}}}}},
            {"zero_optimization", {{"stage", c.stage}, {"reduce_bucket_size", 7000}, {"allgather_bucket_size", 3000}}}};
  if (c.bf16) json["bf16"]["enabled"] = true;
  return json;
}

double peak_of(const Json& result) { return result.at("peak_memory").get<double>(); }

class Recompute : public ::testing::TestWithParam<Case> {};

TEST_P(Recompute, TrainsTheSameInLessMemory) {
  const Case& c = GetParam();
  const std::string options = c.options;
  const Json plain_small = measure(options, config(c, 2)), plain = measure(options, config(c, 6));
  const Json small = measure(options + kSwitch, config(c, 2)), recomputed = measure(options + kSwitch, config(c, 6));
  const auto losses = [](const Json& result) { return result.at("losses").get<std::vector<double>>(); };
  ASSERT_EQ(losses(recomputed).size(), losses(plain).size());
  EXPECT_NE(losses(plain).front(), losses(plain).back());
  for (size_t i = 0; i < losses(plain).size(); ++i) {
    const double expected = losses(plain)[i];
    EXPECT_NEAR(losses(recomputed)[i], expected, (c.bf16 ? 1e-3 : 1e-5) * std::abs(expected)) << "step " << i;
  }
  EXPECT_LT(peak_of(recomputed), peak_of(plain));
  EXPECT_LT(peak_of(recomputed) - peak_of(small), c.most_of_activations * (peak_of(plain) - peak_of(plain_small)));
  EXPECT_EQ(recomputed.at("model_state_bytes"), plain.at("model_state_bytes"));
}

constexpr const char* kGpt1 = "--model gpt --layers 7 --hidden 32 --heads 2 --seq 32 --vocab 64 --ranks 1";
constexpr const char* kGpt2 = "--model gpt --layers 7 --hidden 32 --heads 2 --seq 32 --vocab 64 --ranks 2";
constexpr const char* kGpt4 = "--model gpt --layers 7 --hidden 32 --heads 2 --seq 32 --vocab 64 --ranks 4";
INSTANTIATE_TEST_SUITE_P(
    Stages, Recompute,
    ::testing::Values(Case{"gpt_stage_0_one_rank", kGpt1, 0, false, 0.7}, Case{"gpt_stage_2", kGpt2, 2, false, 0.7},
                      Case{"gpt_stage_3_four_ranks", kGpt4, 3, false, 0.7},
                      Case{"gpt_stage_3_bf16", kGpt2, 3, true, 0.7},
                      Case{"resnet_stage_1", "--model resnet --depth 32 --image 8 --ranks 2", 1, false, 0.85},
                      // With AVX-512 LibTorch gives products in bf16 of more than 16^3 multiplications to oneDNN, whose
                      // kernels take memory of their own: at 64 x 64 those of both micro batches are above that.
                      Case{"mlp_stage_3_bf16", "--model mlp --layers 25 --hidden 64 --ranks 2", 3, true, 0.7}),
    [](const auto& info) { return info.param.name; });

class PredictedSaving : public ::testing::TestWithParam<Case> {};

TEST_P(PredictedSaving, IsWhatRecomputationSaves) {
  const Case& c = GetParam();
  const std::string options = c.options;
  TrialProgram program;
  program.write_config(config(c, 6), 3, 5, /*model_info=*/true);
  const Ended ended = program.run(options);
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Json info = program.result().value();
  const double predicted =
      info.at("activation_peak_kept").get<double>() - info.at("activation_peak_recomputed").get<double>();
  const double saved = peak_of(measure(options, config(c, 6))) - peak_of(measure(options + kSwitch, config(c, 6)));
  EXPECT_NEAR(saved, predicted, 0.1 * predicted);
}

INSTANTIATE_TEST_SUITE_P(
    Models, PredictedSaving,
    ::testing::Values(Case{"gpt_stage_3", kGpt2, 3, false, 0},
                      Case{"resnet_stage_1", "--model resnet --depth 32 --image 8 --ranks 1", 1, false, 0},
                      Case{"bottleneck_resnet_stage_0", "--model resnet --depth 50 --image 16 --ranks 1", 0, false, 0}),
    [](const auto& info) { return info.param.name; });

TEST(RecomputeTest, TheModelInformationCountsRecomputedSegments) {
  const auto segments = [](const std::string& options, const Json& settings) {
    TrialProgram program;
    Json json = settings;
    json["train_micro_batch_size_per_gpu"] = 1;
    program.write_config(json, 3, 5, /*model_info=*/true);
    const Ended ended = program.run("--model mlp --layers 9 --hidden 8" + options);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return program.result().value().at("activation_checkpoints").get<int>();
  };
  const Json five = {{"activation_checkpointing", {{"number_checkpoints", 5}}}};
  EXPECT_EQ(segments("", Json::object()), 0);
  EXPECT_EQ(segments("", five), 0);  // the section configures; the script decides
  EXPECT_EQ(segments(kSwitch, Json::object()), 3);
  EXPECT_EQ(segments(kSwitch, five), 5);
  // A pipeline's key recomputes by itself, with one stage too.
  const Json every_two = {{"pipeline", {{"activation_checkpoint_interval", 2}}}};
  EXPECT_EQ(segments("", every_two), 5);
  EXPECT_EQ(segments(kSwitch, every_two), 5);
}

TEST(RecomputeTest, AnIntervalTrainsTheSameInLessMemory) {
  const Case c{"gpt_stage_2", kGpt2, 2, false, 0};
  Json json = config(c, 6);
  const Json plain = measure(kGpt2, json);
  json["pipeline"]["activation_checkpoint_interval"] = 3;
  const Json recomputed = measure(kGpt2, json);
  EXPECT_EQ(recomputed.at("losses"), plain.at("losses"));
  EXPECT_LT(peak_of(recomputed), 0.9 * peak_of(plain));
}

}  // namespace
}  // namespace dsat::trainer::testing
