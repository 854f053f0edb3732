// ZeRO is real: every stage trains the same model, with its share of the memory.
// Losses and bytes of the real program are compared between stages.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "dsat/cost/memory.h"
#include "trial_program.h"

namespace dsat::trainer::testing {
namespace {

Json config(int stage, int64_t micro_batch = 2, int64_t accumulation = 1) {
  return {{"train_micro_batch_size_per_gpu", micro_batch},
          {"gradient_accumulation_steps", accumulation},
          {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 1e-3}}}}},
          {"zero_optimization", {{"stage", stage}}}};
}

std::vector<double> losses_of(const Json& result) { return result.at("losses").get<std::vector<double>>(); }

void expect_same_losses(const Json& result, const std::vector<double>& expected, const std::string& what) {
  const std::vector<double> losses = losses_of(result);
  ASSERT_EQ(losses.size(), expected.size()) << what;
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], 1e-5 * std::abs(expected[i])) << what << ", step " << i;
  }
}

struct Case {
  const char* name;
  const char* options;
  const char* optimizer;  // JSON
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class SameLosses : public ::testing::TestWithParam<Case> {};

// Small buckets, so that gradients and parameters travel in many pieces; two micro steps, so that they accumulate.
TEST_P(SameLosses, InEveryStageAndInOneProcess) {
  const std::string options = GetParam().options;
  const auto with = [](int stage, int64_t accumulation) {
    Json c = config(stage, 2, accumulation);
    c["optimizer"] = Json::parse(GetParam().optimizer);
    c["gradient_clipping"] = 1.0;
    c["zero_optimization"]["reduce_bucket_size"] = 7000;
    c["zero_optimization"]["allgather_bucket_size"] = 3000;
    return c;
  };
  // The same micro batches one after the other.
  const std::vector<double> expected = losses_of(measure(options + " --ranks 1", with(0, 4), 3, 9));
  ASSERT_EQ(expected.size(), 10u);
  EXPECT_NE(expected.front(), expected.back());
  for (int stage = 0; stage <= 3; ++stage) {
    const Json result = measure(options + " --ranks 2", with(stage, 2), 3, 9);
    expect_same_losses(result, expected, "stage " + std::to_string(stage));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SameLosses,
                         ::testing::Values(Case{"gpt",
                                                "--model gpt --layers 2 --hidden 64 --heads 2 --seq 32 --vocab 128",
                                                R"({"type": "Adam", "params": {"lr": 1e-3, "weight_decay": 0.01}})"},
                                           Case{"mlp", "--model mlp --layers 3 --hidden 63",
                                                R"({"type": "SGD", "params": {"lr": 0.05, "momentum": 0.9}})"},
                                           Case{"resnet", "--model resnet --depth 8 --image 16",
                                                R"({"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.8, 0.99]}})"}),
                         [](const auto& info) { return info.param.name; });

TEST(ZeroTest, OverlappedAndAllReducedGradientsAreTheSame) {
  const std::string options = "--model gpt --layers 2 --hidden 64 --heads 2 --seq 32 --vocab 128 --ranks 2";
  const std::vector<double> expected = losses_of(measure(options, config(0), 3, 5));
  for (int stage : {1, 2, 3}) {
    Json c = config(stage);
    c["zero_optimization"]["reduce_bucket_size"] = 20000;
    c["zero_optimization"]["overlap_comm"] = true;
    c["zero_optimization"]["reduce_scatter"] = stage == 3;
    expect_same_losses(measure(options, c, 3, 5), expected, "stage " + std::to_string(stage));
  }
}

TEST(ZeroTest, PersistentParametersBeginWithTheSameValues) {
  const std::string options = "--model gpt --layers 2 --hidden 64 --heads 2 --seq 32 --vocab 128 --ranks 2";
  Json c = config(3);
  const std::vector<double> expected = losses_of(measure(options, c, 1, 2));
  c["zero_optimization"]["stage3_param_persistence_threshold"] = 100;
  expect_same_losses(measure(options, c, 1, 2), expected, "small parameters persistent");
}

// Parameter-heavy: 4 x 256 x 257 parameters.
constexpr double kParams = 4.0 * 256 * 257;
constexpr const char* kMlp = "--model mlp --layers 4 --hidden 256";

void expect_model_states(const Json& result, double bytes_per_param, const std::string& what) {
  EXPECT_NEAR(result.at("model_state_bytes").get<double>(), bytes_per_param * kParams, 0.05 * bytes_per_param * kParams)
      << what;
}

TEST(ZeroTest, ModelStatesFollowTheFormulaInFp32) {
  const double n = 2;
  const double expected[] = {16, 8 + 8 / n, 4 + 12 / n, 16 / n};
  for (int stage = 0; stage <= 3; ++stage) {
    const Json result = measure(std::string(kMlp) + " --ranks 2", config(stage));
    expect_model_states(result, expected[stage], "stage " + std::to_string(stage));
  }
}

TEST(ZeroTest, ModelStatesFollowTheFormulaInBf16) {
  const double n = 2;
  const double expected[] = {16, 4 + 12 / n, 2 + 14 / n, 16 / n};
  for (int stage = 0; stage <= 3; ++stage) {
    Json c = config(stage);
    c["bf16"]["enabled"] = true;
    expect_model_states(measure(std::string(kMlp) + " --ranks 2", c), expected[stage],
                        "stage " + std::to_string(stage));
  }
}

TEST(ZeroTest, SgdKeepsItsMomentumOnly) {
  Json c = config(0);
  c["optimizer"] = {{"type", "SGD"}, {"params", {{"lr", 0.1}}}};
  expect_model_states(measure(kMlp, c), 8, "plain");
  c["optimizer"]["params"]["momentum"] = 0.9;
  expect_model_states(measure(kMlp, c), 12, "momentum");
}

TEST(ZeroTest, FourRanksNeedLessThanTwoAtStageThree) {
  const Json two = measure(std::string(kMlp) + " --ranks 2", config(3));
  const Json four = measure(std::string(kMlp) + " --ranks 4", config(3));
  expect_model_states(four, 16.0 / 4, "four ranks");
  EXPECT_LT(four.at("peak_memory"), two.at("peak_memory"));
}

// docs/trainer.md: peak = model states + what the stage holds during a step + activations x micro batch.
TEST(ZeroTest, PeakExtrapolatesFromOneStageToTheOthers) {
  const std::string options = "--model gpt --layers 2 --hidden 64 --heads 2 --seq 32 --vocab 128 --ranks 2";
  const auto peak = [&](int stage, int64_t micro_batch) {
    return measure(options, config(stage, micro_batch), 1, 1).at("peak_memory").get<double>();
  };
  const double p = 64 * (128 + 32) + 2 * (12 * 64 * 64 + 13 * 64) + 64 * 130;
  const double largest_layer = 12 * 64 * 64 + 13 * 64;
  const double layer = 4 * largest_layer;  // a bucket by default
  const double beyond_activations[] = {16 * p, 12 * p, 10 * p + layer, 8 * p + 2 * layer + layer};
  const double at2 = peak(0, 2), at4 = peak(0, 4);
  for (int stage = 1; stage <= 3; ++stage) {
    const double expected = at4 + 2 * (at4 - at2) + beyond_activations[stage] - beyond_activations[0];
    EXPECT_NEAR(peak(stage, 8), expected, 0.01 * expected) << "stage " << stage;
  }
}

// The cost model's formula, with what the program itself reports of its model, against the program's own peaks.
TEST(ZeroTest, WhatStage3KeepsGatheredFollowsTheFormula) {
  const std::string options = "--model gpt --layers 6 --hidden 64 --heads 2 --seq 8 --vocab 32 --ranks 2";
  TrialProgram program;
  program.write_config(config(3, 1), 1, 2, /*model_info=*/true);
  ASSERT_EQ(program.run(options).status, 0);
  const cost::ModelSize size = cost::inputs_from_profile(program.result().value()).size;
  const auto formula = [&](const Json& c) {
    const cost::Setup setup = cost::setup_from_config(c, 2, size.engine());
    return cost::model_state_bytes(size, setup) + cost::buffer_bytes(size, setup);
  };
  const double base = measure(options, config(3, 1)).at("peak_memory").get<double>() - formula(config(3, 1));
  const double layer = size.largest_layer_params;
  for (const Json& keys :
       {Json{{"stage3_prefetch_bucket_size", layer}}, Json{{"stage3_prefetch_bucket_size", 5e8}},
        Json{{"stage3_max_reuse_distance", 4 * layer}}, Json{{"stage3_max_reuse_distance", 1e9}},
        Json{{"stage3_max_reuse_distance", 2 * layer}, {"stage3_prefetch_bucket_size", 2 * layer}},
        Json{{"stage3_max_live_parameters", 2 * layer}, {"stage3_prefetch_bucket_size", 5e8}},
        Json{{"stage3_param_persistence_threshold", 1000}}, Json{{"stage3_param_persistence_threshold", 10000}},
        Json{{"stage3_param_persistence_threshold", 1e5}}}) {
    Json c = config(3, 1);
    c["zero_optimization"].update(keys);
    const double expected = base + formula(c);
    EXPECT_NEAR(measure(options, c).at("peak_memory").get<double>(), expected, 0.02 * expected) << keys;
  }
}

TEST(ZeroTest, Bf16TrainsLikeFp32) {
  const std::string options = "--model gpt --layers 2 --hidden 64 --heads 2 --seq 32 --vocab 128 --ranks 2";
  Json c = config(2);
  const std::vector<double> expected = losses_of(measure(options, c, 3, 5));
  c["bf16"]["enabled"] = true;
  const std::vector<double> losses = losses_of(measure(options, c, 3, 5));
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 0.01 * expected[i]);
}

TEST(ZeroTest, TheSeedDecidesTheLossesAndThePeak) {
  const std::string options = "--model gpt --layers 1 --hidden 32 --heads 2 --seq 16 --vocab 64 --ranks 2";
  const Json first = measure(options + " --seed 1", config(2));
  const Json again = measure(options + " --seed 1", config(2));
  EXPECT_EQ(first.at("losses"), again.at("losses"));
  EXPECT_EQ(first.at("peak_memory"), again.at("peak_memory"));
  EXPECT_NE(measure(options + " --seed 2", config(2)).at("losses"), first.at("losses"));
}

// The computing thread alone takes and frees tensors, so how far the communication thread has come shows in no peak.
TEST(ZeroTest, ThePeakIsTheSameBesideOtherTrials) {
  const std::string options = "--model mlp --layers 12 --hidden 32 --ranks 2";
  for (const int stage : {2, 3}) {
    Json c = config(stage, 6, 2);
    c["bf16"]["enabled"] = true;
    c["zero_optimization"].update({{"overlap_comm", true},
                                   {"reduce_bucket_size", 3000},
                                   {"allgather_bucket_size", 1000},
                                   {"stage3_prefetch_bucket_size", 2000},
                                   {"stage3_max_live_parameters", 5000}});
    const Json alone = measure(options, c).at("peak_memory");
    std::vector<TrialProgram> programs(4);
    std::vector<pid_t> pids;
    for (TrialProgram& program : programs) {
      program.write_config(c, 1, 2);
      pids.push_back(program.start(options));
    }
    for (size_t i = 0; i < programs.size(); ++i) {
      ASSERT_EQ(programs[i].wait(pids[i]).status, 0);
      EXPECT_EQ(programs[i].result().value().at("peak_memory"), alone) << "stage " << stage;
    }
  }
}

}  // namespace
}  // namespace dsat::trainer::testing
