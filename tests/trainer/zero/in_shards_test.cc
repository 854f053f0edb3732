// Models that are made in shards: no rank ever has all of one, and it trains as one that was made whole.
#include "dsat/trainer/in_shards.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cstring>
#include <stdexcept>

#include "device/device_memory.h"
#include "dsat/trainer/engine.h"
#include "trainer/on_worlds.h"

namespace dsat::trainer::in_shards_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kWidth = 256, kLayers = 16;
constexpr int64_t kLayerBytes = kWidth * kWidth * 4;

struct Tied : torch::nn::Module {
  explicit Tied(const at::Tensor& of) : weight(register_parameter("weight", of)) {}
  at::Tensor weight;
};

// With what constructors do: a tied weight, a frozen one, a buffer, and a second initialization of all weights.
struct Deep : torch::nn::Module {
  Deep() {
    layers = register_module("layers", torch::nn::ModuleList());
    for (int64_t i = 0; i < kLayers; ++i) layers->push_back(torch::nn::Linear(kWidth, kWidth));
    frozen = register_module("frozen", torch::nn::Linear(kWidth, kWidth));
    offset = register_buffer("offset", at::randn({kWidth}));
    const torch::NoGradGuard no_grad;
    for (const auto& item : layers->named_parameters()) {
      if (item.value().dim() == 2) torch::nn::init::orthogonal_(item.value().view({kWidth, kWidth}), 0.9);
    }
    tied = register_module("tied", std::make_shared<Tied>(layers[1]->as<torch::nn::Linear>()->weight));
    for (const auto& item : frozen->named_parameters()) item.value().set_requires_grad(false);
  }
  at::Tensor forward(at::Tensor x) {
    x = frozen->forward(x) + offset;
    for (const auto& layer : *layers) x = layer->as<torch::nn::Linear>()->forward(x).tanh();
    return at::linear(x, tied->weight).square().mean();
  }
  torch::nn::ModuleList layers{nullptr};
  std::shared_ptr<Tied> tied;
  torch::nn::Linear frozen{nullptr};
  at::Tensor offset;
};

Json config(int stage, bool bf16) {
  return {{"train_micro_batch_size_per_gpu", 2},
          {"bf16", {{"enabled", bf16}}},
          {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 0.01}}}}},
          {"zero_optimization", {{"stage", stage}}}};
}

std::shared_ptr<Deep> make(World& world, bool is_sharded) {
  torch::manual_seed(5 + static_cast<uint64_t>(world.rank()));  // rank 0's values count
  const auto make_deep = [] { return std::make_shared<Deep>(); };
  return is_sharded ? in_shards(world, make_deep) : make_deep();
}

std::vector<float> losses(World& world, int stage, bool bf16, bool is_sharded) {
  const auto engine = initialize(make(world, is_sharded), world, config(stage, bf16));
  torch::manual_seed(1);
  std::vector<float> losses;
  for (int step = 0; step < 3; ++step) {
    const at::Tensor loss = engine->forward(at::randn({2, kWidth}).to(engine->dtype()));
    losses.push_back(loss.item<float>());
    engine->backward(loss);
    engine->step();
  }
  return losses;
}

TEST(InShards, TrainsAsAModelThatWasMadeWhole) {
  const RankResult result = on_worlds(3, [](World& world) -> std::string {
    for (const int stage : {0, 1, 2, 3}) {
      for (const bool bf16 : {false, true}) {
        const std::vector<float> expected = losses(world, stage, bf16, false);
        if (expected.front() == expected.back()) return "the losses do not tell whether the model learns";
        if (losses(world, stage, bf16, true) != expected) return "other losses at stage " + std::to_string(stage);
      }
    }
    return "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(InShards, NoRankHasAllParametersAtOnce) {
  const RankResult result = on_worlds(4, [](World& world) -> std::string {
    const auto before = static_cast<int64_t>(memory_in_use());
    begin_memory_window();
    const auto net = make(world, true);
    // The parts of all, and a few layers: one at work, and what orthogonal_ computes with.
    const int64_t parts = (kLayers + 1) * kLayerBytes / 4, most = parts + 7 * kLayerBytes;
    const int64_t in_use = static_cast<int64_t>(memory_in_use()) - before;
    if (in_use > parts + kLayerBytes / 2) return "in use " + std::to_string(in_use);
    const int64_t peak = static_cast<int64_t>(memory_window_peak()) - before;
    if (peak > most) return "peak " + std::to_string(peak) + " of at most " + std::to_string(most);
    return "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

// Shard, master and the whole model were there together once.
TEST(InShards, AModelThatWasMadeWholeGoesAsItsPartsAreTaken) {
  const RankResult result = on_worlds(4, [](World& world) -> std::string {
    begin_memory_window();
    const auto engine = initialize(make(world, false), world, config(3, /*bf16=*/true));
    const int64_t whole = (kLayers + 1) * kLayerBytes, after = static_cast<int64_t>(memory_in_use());
    const int64_t peak = static_cast<int64_t>(memory_window_peak());
    if (peak > std::max(whole + whole / 4 * 3 / 2 + kLayerBytes, after + kLayerBytes)) {
      return "peak " + std::to_string(peak) + " for " + std::to_string(whole);
    }
    return "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(InShards, WhoReadsAParameterTooEarlyGetsALine) {
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    const auto net = make(world, true);
    return "nothing happened: " + std::to_string(net->layers->parameters().front().sum().item<float>());
  });
  EXPECT_EQ(result.kind, FailureKind::error);
  EXPECT_THAT(result.message, HasSubstr("a parameter was read before initialize()"));
}

TEST(InShards, WhatTheConstructorThrowsComesOut) {
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    try {
      in_shards(world, []() -> std::shared_ptr<Deep> {
        const torch::nn::Linear first(kWidth, kWidth);
        throw std::runtime_error("no such file");
      });
    } catch (const std::runtime_error& error) {
      if (std::strcmp(error.what(), "no such file") != 0) return error.what();
      // Nothing is cut any more.
      return torch::nn::Linear(kWidth, kWidth)->weight.abs().sum().item<float>() > 0 ? "" : "no values";
    }
    return "nothing was thrown";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(InShards, RanksThatMakeDifferentModelsAreRefused) {
  for (const int64_t more : {0, 8}) {  // another number of layers, or another width
    const RankResult result = on_worlds(2, [more](World& world) -> std::string {
      in_shards(world, [&] {
        auto net = std::make_shared<torch::nn::ModuleListImpl>();
        net->push_back(torch::nn::Linear(kWidth, kWidth + more * world.rank()));
        if (world.rank() == 0 || more > 0) net->push_back(torch::nn::Linear(kWidth, kWidth));
        return net;
      });
      return "nothing happened";
    });
    EXPECT_THAT(result.message, HasSubstr("ranks make different models in in_shards()"));
  }
}

TEST(InShards, ABudgetThatIsTooSmallIsAnOutOfMemory) {
  const uint16_t port = free_port();
  const RankResult result = launch(2, [&](int rank) {
    use_one_thread();
    WorldOptions options;
    options.device_memory = 3 * kLayerBytes;
    return run_rank(options, nullptr, {rank, 2, "127.0.0.1", port}, [&](World& world) { make(world, true); });
  });
  EXPECT_EQ(result.kind, FailureKind::out_of_memory) << result.message;
}

}  // namespace
}  // namespace dsat::trainer::in_shards_test
