// Checkpoints of pipelines: a training that was cut into stages goes on, cut alike or in another way.
// Damaged files and other models are refused in one line, before anything changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <tuple>

#include "base/random.h"
#include "dsat/error.h"
#include "dsat/trainer/pipeline.h"
#include "support/temp_dir.h"
#include "trainer/on_ranks.h"

namespace dsat::trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kWords = 11, kWidth = 6, kSamples = 4, kMicroBatches = 4;  // those of a step, on all ranks
constexpr uint64_t kSeed = 3;

at::Tensor as_words(torch::nn::EmbeddingImpl& embedding, const at::Tensor& x) {
  return at::linear(x, embedding.weight);
}

// The first and the last layer share a matrix, and one layer has a state that is not trained.
std::vector<LayerSpec> layers(int64_t width) {
  const auto look_up = [](torch::nn::EmbeddingImpl& embedding, const at::Tensor& x) { return embedding.forward(x); };
  return {tied_layer<torch::nn::Embedding>("words", look_up, kWords, kWidth), layer<torch::nn::Linear>(kWidth, width),
          layer<torch::nn::BatchNorm1d>(width), layer<torch::nn::Linear>(width, kWidth),
          tied_layer<torch::nn::Embedding>("words", as_words, kWords, kWidth)};
}

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target) {
  return at::cross_entropy_loss(output.to(at::kFloat), target);
}

std::vector<at::Tensor> batch_of(int64_t number) {
  const RandomStream stream(kSeed, static_cast<uint64_t>(number));
  at::Tensor words = at::empty({2, kSamples}, at::TensorOptions().dtype(at::kLong));
  for (int64_t i = 0; i < words.numel(); ++i) {
    words.data_ptr<int64_t>()[i] = static_cast<int64_t>(stream.bits(static_cast<uint64_t>(i)) % kWords);
  }
  return {words[0], words[1]};
}

struct Cut {
  int ranks, stages, zero_stage;
};

Json config_of(const Cut& cut) {
  return {{"train_micro_batch_size_per_gpu", kSamples},
          {"gradient_accumulation_steps", kMicroBatches * cut.stages / cut.ranks},
          {"gradient_clipping", 0.5},
          {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 0.05}, {"weight_decay", 0.1}}}}},
          {"pipeline", {{"stages", cut.stages}}},
          {"zero_optimization", {{"stage", cut.zero_stage}}}};
}

class PipelineCheckpoint : public TempDirTest {
 protected:
  using Body = std::function<void(PipelineEngine&, std::vector<double>& losses)>;
  // What `body` finds on rank 0.
  std::vector<double> on_engines(const Cut& cut, const Body& body, int64_t width = kWidth) {
    const fs::path file = dir() / "losses.json";
    const RankResult result = on_ranks(cut.ranks, [&](Comm& comm) -> std::string {
      std::vector<int> all;
      for (int rank = 0; rank < comm.size(); ++rank) all.push_back(rank);
      WorldOptions options;
      options.seed = kSeed;
      Json config = config_of(cut);
      if (!tuning_.is_null()) config["autotuning"] = tuning_;
      World world(comm.split(all), options, config);
      const auto engine =
          initialize(PipelineModule(layers(width), cross_entropy, 0, PartitionMethod::uniform), world, world.config());
      std::vector<double> losses;
      body(*engine, losses);
      if (comm.rank() == 0) std::ofstream(file) << Json(losses).dump();
      return "";
    });
    error_ = result.message;
    std::ifstream in(file);
    return result.kind == FailureKind::none ? Json::parse(in).get<std::vector<double>>() : std::vector<double>();
  }
  // Trains until `steps` are done, from the checkpoint if there is one, and saves; then the loss in evaluation.
  std::vector<double> train(const Cut& cut, int64_t steps, int64_t width = kWidth) {
    const auto body = [&](PipelineEngine& engine, std::vector<double>& losses) {
      if (fs::exists(checkpoints() / "latest")) engine.load_checkpoint(checkpoints().string());
      while (engine.global_steps() < steps) losses.push_back(engine.train_batch(batches(engine)));
      engine.save_checkpoint(checkpoints().string(), "step" + std::to_string(steps));
      engine.eval();
      losses.push_back(engine.eval_batch(batches(engine)));
    };
    return on_engines(cut, body, width);
  }
  static PipelineEngine::MicroBatches batches(const PipelineEngine& engine) {
    const ModelParallelUnit unit = engine.mpu();
    return [unit, i = engine.global_steps() * engine.gradient_accumulation_steps()]() mutable {
      return batch_of(i++ * unit.data_parallel_world_size + unit.data_parallel_rank);
    };
  }

  fs::path checkpoints() const { return dir() / "checkpoints"; }
  std::vector<std::string> files_of(const std::string& tag) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(checkpoints() / tag)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  Json tuning_;  // the section autotuning; null: none
  std::string error_;
};

TEST_F(PipelineCheckpoint, GoesOnToTheSameLossesAndEveryRankHasAFile) {
  const Cut cut = {4, 2, 1};
  std::vector<double> whole = train(cut, 6);
  ASSERT_EQ(whole.size(), 7u) << error_;
  fs::remove_all(checkpoints());
  train(cut, 3);
  EXPECT_THAT(files_of("step3"),
              ElementsAre("checkpoint.json", "stage_000_rank_00000.ckpt", "stage_000_rank_00001.ckpt",
                          "stage_001_rank_00000.ckpt", "stage_001_rank_00001.ckpt"));
  whole.erase(whole.begin(), whole.begin() + 3);
  EXPECT_EQ(train(cut, 6), whole) << error_;
}

// Data-parallel size, ZeRO stage and number of stages all change; one stage's engine is data-parallel only.
TEST_F(PipelineCheckpoint, LoadsHoweverTheModelIsCut) {
  std::vector<double> whole = train({2, 2, 0}, 10);
  ASSERT_EQ(whole.size(), 11u) << error_;
  whole.pop_back();  // what is not trained depends on the rank's own micro batches
  fs::remove_all(checkpoints());
  std::vector<double> losses;
  int64_t steps = 0;
  for (const Cut& cut : {Cut{4, 2, 1}, Cut{2, 2, 0}, Cut{3, 3, 1}, Cut{2, 1, 1}, Cut{1, 1, 0}}) {
    const std::vector<double> more = train(cut, steps += 2);
    ASSERT_EQ(more.size(), 3u) << error_;
    losses.insert(losses.end(), more.begin(), more.end() - 1);
  }
  ASSERT_EQ(losses.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(losses[i], whole[i], 1e-5 * whole[i]) << "step " << i;
}

TEST_F(PipelineCheckpoint, WhatIsNotTrainedGoesWithItsLayer) {
  const double expected = train({2, 2, 0}, 2).back();
  for (const Cut& cut : {Cut{3, 3, 1}, Cut{1, 1, 0}}) {
    const std::vector<double> found = train(cut, 2);
    ASSERT_EQ(found.size(), 1u) << error_;
    EXPECT_NEAR(found.back(), expected, 1e-5 * expected);
  }
}

TEST_F(PipelineCheckpoint, ATrialThatGoesOnInsideItsWindowMeasuresItsOwnSteps) {
  const Cut cut = {2, 2, 0};
  train(cut, 3);
  const fs::path file = dir() / "metrics.json";
  const auto measure = [&](int last_step) {
    tuning_ = {{"enabled", true}, {"start_profile_step", 1}, {"end_profile_step", last_step}};
    tuning_["metric_path"] = file.string();
    on_engines(cut, [&](PipelineEngine& engine, std::vector<double>&) {
      engine.load_checkpoint(checkpoints().string());
      try {
        while (true) engine.train_batch(batches(engine));
      } catch (const TuningDone&) {
      }
    });
  };
  const auto begin = std::chrono::steady_clock::now();
  measure(4);
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(fs::exists(file)) << error_;
  std::ifstream in(file);
  const Json metrics = Json::parse(in);
  EXPECT_EQ(metrics.at("samples"), 2 * kSamples * kMicroBatches);
  EXPECT_LT(2 * metrics.at("wall_latency").get<double>(), elapsed.count());
  measure(2);
  EXPECT_THAT(error_, HasSubstr("past end_profile_step 2"));
}

TEST_F(PipelineCheckpoint, AFolderThatCannotBeMadeIsNamed) {
  on_engines({1, 1, 0}, [](PipelineEngine& engine, std::vector<double>&) {
    engine.save_checkpoint("/dev/null/checkpoints", "step0");
  });
  EXPECT_THAT(error_, HasSubstr("cannot change /dev/null/checkpoints"));
  EXPECT_THAT(error_, HasSubstr("Not a directory"));
}

TEST_F(PipelineCheckpoint, OfAnotherModelOrDamagedIsRefusedInOneLine) {
  train({2, 2, 1}, 1);
  EXPECT_TRUE(train({2, 2, 1}, 2, kWidth + 1).empty());
  EXPECT_THAT(error_, AllOf(HasSubstr("step1"), HasSubstr("layer1.bias is [6]"), HasSubstr("[7] here")));
  const fs::path description = checkpoints() / "step1" / "checkpoint.json";
  std::ifstream in(description);
  const Json whole = Json::parse(in);
  for (const auto& [key, value, message] :
       {std::tuple("pipeline_stages", 3, "2 ranks in 3"), std::tuple("version", 9, "step1 has version 9"),
        std::tuple("optimizer", 7, "checkpoint.json lacks")}) {
    Json changed = whole;
    changed[key] = value;
    std::ofstream(description) << changed.dump();
    EXPECT_TRUE(train({2, 2, 1}, 2).empty());
    EXPECT_THAT(error_, HasSubstr(message));
  }
  std::ofstream(description) << whole.dump();
  // The file of the stage that this rank is not in.
  fs::resize_file(checkpoints() / "step1" / "stage_001_rank_00000.ckpt", 1000);
  EXPECT_TRUE(train({2, 2, 1}, 2).empty());
  EXPECT_THAT(error_, AllOf(HasSubstr("stage_001_rank_00000.ckpt is truncated"), HasSubstr("1000 of ")));
  fs::remove(checkpoints() / "step1" / "stage_001_rank_00000.ckpt");
  EXPECT_TRUE(train({1, 1, 0}, 2).empty());
  EXPECT_THAT(error_, HasSubstr("stage_001_rank_00000.ckpt is missing"));
  EXPECT_THAT(files_of("step1"), ElementsAre("checkpoint.json", "stage_000_rank_00000.ckpt"));
  EXPECT_FALSE(fs::exists(checkpoints() / "step2"));
}

}  // namespace
}  // namespace dsat::trainer
