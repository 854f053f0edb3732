// Any torch::nn::Module in the engine: at every stage and on any number of ranks it trains as one process does.
// Plain LibTorch with all micro batches in sequence gives the losses to expect.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "base/random.h"
#include "dsat/trainer/engine.h"
#include "dsat/trainer/recompute.h"
#include "support/error_of.h"
#include "support/temp_dir.h"
#include "trainer/on_worlds.h"

namespace dsat::trainer {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kVocabulary = 13, kWidth = 10, kSamples = 3, kWords = 5;
constexpr int kSteps = 4;

// Shares the weight of another module.
struct TiedHead : torch::nn::Module {
  explicit TiedHead(const at::Tensor& tied) : weight(register_parameter("weight", tied)) {}
  at::Tensor weight;
};

// A language model with a head that is tied to the embedding, a parameter that is never used, one that needs no
// gradient, and a part with dropout whose activations may be recomputed.
struct Net : torch::nn::Module {
  explicit Net(bool recomputes) : recomputes_(recomputes) {
    embedding = register_module("embedding", torch::nn::Embedding(kVocabulary, kWidth));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    inner = register_module("inner", torch::nn::Linear(kWidth, 3 * kWidth));
    outer = register_module("outer", torch::nn::Linear(3 * kWidth, kWidth));
    unused = register_module("unused", torch::nn::Linear(4, 3));
    head = register_module("head", std::make_shared<TiedHead>(embedding->weight));
    scale = register_parameter("scale", at::ones({1}));
    frozen = register_parameter("frozen", at::full({1}, 0.5), /*requires_grad=*/false);
  }

  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& targets) {
    const auto part = [this](const std::vector<at::Tensor>& in) {
      return at::dropout(outer->forward(at::relu(inner->forward(norm->forward(in.front())))), 0.1, is_training());
    };
    at::Tensor x = embedding->forward(tokens);
    x = x + frozen * (recomputes_ ? recompute(part, {x}) : part({x}));
    const at::Tensor scores = at::linear(x * scale, head->weight);
    return at::cross_entropy_loss(scores.view({-1, kVocabulary}).to(at::kFloat), targets.view({-1}));
  }

  bool recomputes_;
  torch::nn::Embedding embedding{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear inner{nullptr}, outer{nullptr}, unused{nullptr};
  std::shared_ptr<TiedHead> head;
  at::Tensor scale, frozen;
};

// Micro batch `number` of the whole training; its dropout too is the same wherever it is computed.
std::pair<at::Tensor, at::Tensor> batch(int64_t number) {
  const RandomStream stream(3, static_cast<uint64_t>(number));
  at::Tensor tokens = at::empty({2, kSamples, kWords}, at::TensorOptions().dtype(at::kLong));
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data_ptr<int64_t>()[i] = stream.below(static_cast<uint64_t>(i), kVocabulary);
  }
  torch::manual_seed(static_cast<uint64_t>(number));
  return {tokens[0], tokens[1]};
}

std::shared_ptr<Net> make_net(bool recomputes, uint64_t seed) {
  torch::manual_seed(seed);
  return std::make_shared<Net>(recomputes);
}

// LibTorch has no Lamb: the published formulas, a whole parameter at a time.
class Lamb {
 public:
  Lamb(const std::vector<at::Tensor>& parameters, double lr) : parameters_(parameters), lr_(lr) {
    for (const at::Tensor& parameter : parameters) moments_.emplace_back(zeros_like(parameter), zeros_like(parameter));
  }
  void step() {
    const torch::NoGradGuard no_grad;
    ++steps_;
    const double rate = lr_ * std::sqrt(1 - std::pow(0.999, steps_)) / (1 - std::pow(0.9, steps_));
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& gradient = parameters_[i].grad();
      if (!gradient.defined()) continue;
      auto& [mean, square] = moments_[i];
      mean = 0.9 * mean + 0.1 * gradient;
      square = 0.999 * square + 0.001 * gradient * gradient;
      const at::Tensor direction = mean / (square.sqrt() + 1e-8);
      const double length = parameters_[i].norm().item<double>(), way = direction.norm().item<double>();
      const double ratio = length > 0 ? std::clamp(length / way, 0.01, 10.0) : 1;
      parameters_[i].sub_(rate * ratio * direction);
    }
  }

 private:
  static at::Tensor zeros_like(const at::Tensor& parameter) { return at::zeros_like(parameter.detach()); }
  std::vector<at::Tensor> parameters_;
  std::vector<std::pair<at::Tensor, at::Tensor>> moments_;
  double lr_;
  int steps_ = 0;
};

// Mean loss of each step: plain LibTorch, one process, all micro batches in sequence.
std::vector<double> expected_losses(int64_t micro_batches, bool lamb) {
  const auto net = make_net(false, 1);
  std::vector<at::Tensor> parameters;
  for (const auto& item : net->named_parameters()) {
    if (item.key() != "head.weight") parameters.push_back(item.value());  // or it would be updated twice
  }
  torch::optim::Adam optimizer(parameters, torch::optim::AdamOptions(0.01));
  Lamb of_lamb(parameters, 0.01);
  std::vector<double> losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    double sum = 0;
    for (int64_t i = 0; i < micro_batches; ++i) {
      const auto [tokens, targets] = batch(step * micro_batches + i);
      const at::Tensor loss = net->forward(tokens, targets);
      sum += loss.item<double>();
      (loss / static_cast<double>(micro_batches)).backward();
    }
    if (lamb) {
      of_lamb.step();
    } else {
      optimizer.step();
    }
    losses.push_back(sum / static_cast<double>(micro_batches));
  }
  return losses;
}

struct Case {
  const char* name;
  int ranks, accumulation;
  const char* zero;  // the section zero_optimization
  bool bf16 = false, recomputes = false, lamb = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Json config_of(const Case& c) {
  Json config{{"train_micro_batch_size_per_gpu", kSamples},
              {"gradient_accumulation_steps", c.accumulation},
              {"optimizer", {{"type", c.lamb ? "Lamb" : "Adam"}, {"params", {{"lr", 0.01}}}}},
              {"zero_optimization", Json::parse(c.zero)}};
  if (c.bf16) config["bf16"]["enabled"] = true;
  return config;
}

std::vector<double> losses_in_engine(World& world, const Case& c) {
  // Other initial values on every rank: rank 0's count.
  const auto engine = initialize(make_net(c.recomputes, 1 + static_cast<uint64_t>(world.rank())), world, config_of(c));
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    double sum = 0;
    for (int i = 0; i < c.accumulation; ++i) {
      const auto [tokens, targets] = batch(engine->micro_steps() * world.size() + world.rank());
      const at::Tensor loss = engine->forward(tokens, targets);
      sum += loss.item<double>();
      engine->backward(loss);
      engine->step();
    }
    losses.push_back(sum / c.accumulation);
  }
  losses = sum_over_ranks(world.comm(), losses);
  for (double& loss : losses) loss /= world.size();
  return losses;
}

// What is wrong, or nothing.
std::string compare(World& world, const Case& c) {
  const std::vector<double> expected = expected_losses(int64_t{c.accumulation} * world.size(), c.lamb);
  const std::vector<double> losses = losses_in_engine(world, c);
  const auto [lowest, highest] = std::minmax_element(expected.begin(), expected.end());
  if (*highest - *lowest < 0.1) return "the losses do not tell whether the model learns";
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(losses[i] - expected[i]) <= (c.bf16 ? 2e-2 : 1e-5) * expected[i]) continue;
    return "step " + std::to_string(i) + ": loss " + std::to_string(losses[i]) + ", expected " +
           std::to_string(expected[i]);
  }
  return "";
}

class ModuleEngine : public ::testing::TestWithParam<Case> {};

TEST_P(ModuleEngine, TrainsAsOneProcessDoes) {
  const RankResult result = on_worlds(GetParam().ranks, [](World& world) { return compare(world, GetParam()); });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ModuleEngine,
    ::testing::Values(
        Case{"stage_0_alone", 1, 3, R"({"stage": 0})"},
        Case{"stage_3_alone_recomputed", 1, 1, R"({"stage": 3})", false, true},
        Case{"stage_0_overlap", 2, 1, R"({"stage": 0, "overlap_comm": true, "reduce_bucket_size": 100})"},
        Case{"stage_1_overlap_accumulation", 2, 3,
             R"({"stage": 1, "overlap_comm": true, "reduce_bucket_size": 333, "allgather_partitions": false})"},
        Case{"stage_1_recomputed", 2, 1, R"({"stage": 1})", false, true},
        Case{"stage_2", 2, 3, R"({"stage": 2, "reduce_bucket_size": 1, "contiguous_gradients": false})"},
        Case{"stage_2_overlap_recomputed", 2, 1, R"({"stage": 2, "overlap_comm": true, "reduce_bucket_size": 400})",
             false, true},
        Case{"stage_3_three_ranks", 3, 1, R"({"stage": 3, "overlap_comm": false, "reduce_scatter": false})"},
        Case{"stage_3_accumulation", 2, 3, R"({"stage": 3, "reduce_bucket_size": 1})"},
        Case{"stage_3_prefetch", 2, 3, R"({"stage": 3, "stage3_prefetch_bucket_size": 300})", false, true},
        Case{"stage_3_prefetch_in_line", 2, 1,
             R"({"stage": 3, "overlap_comm": false, "stage3_prefetch_bucket_size": 300})"},
        Case{"stage_3_persistent", 2, 1, R"({"stage": 3, "stage3_param_persistence_threshold": 30})"},
        Case{"stage_3_live", 2, 3,
             R"({"stage": 3, "stage3_max_live_parameters": 500, "stage3_max_reuse_distance": 400,
                 "stage3_prefetch_bucket_size": 100, "stage3_param_persistence_threshold": 10})"},
        Case{"stage_3_offload", 2, 1, R"({"stage": 3, "offload_param": {"device": "cpu"}})"},
        // A parameter's length is that of its parts on all ranks.
        Case{"stage_0_lamb", 2, 1, R"({"stage": 0})", false, false, true},
        Case{"stage_2_lamb", 3, 1, R"({"stage": 2})", false, false, true},
        Case{"stage_3_lamb", 2, 3, R"({"stage": 3})", false, false, true},
        Case{"stage_0_bf16_overlap", 2, 1, R"({"stage": 0, "overlap_comm": true})", true},
        Case{"stage_2_bf16_accumulation", 2, 3, R"({"stage": 2, "reduce_bucket_size": 100})", true},
        Case{"stage_3_bf16_prefetch", 2, 1, R"({"stage": 3, "stage3_prefetch_bucket_size": 1000})", true, true}),
    [](const auto& info) { return info.param.name; });

// Ranks that do not all use every parameter get the sum of what there is.
TEST(ModuleEngineUse, ParametersThatOneRankUsesAreTrainedOnAll) {
  struct Choice : torch::nn::Module {
    at::Tensor left = register_parameter("left", at::ones({3})), right = register_parameter("right", at::ones({3}));
    at::Tensor forward(bool is_left) { return (is_left ? left : right).sum(); }
  };
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    for (const int stage : {0, 1, 2}) {
      const Json config{{"train_micro_batch_size_per_gpu", 1},
                        {"optimizer", {{"type", "SGD"}, {"params", {{"lr", 0.5}}}}},
                        {"zero_optimization", {{"stage", stage}, {"overlap_comm", true}, {"reduce_bucket_size", 1}}}};
      const auto engine = initialize(std::make_shared<Choice>(), world, config);
      for (int step = 0; step < 2; ++step) {
        engine->backward(engine->forward((world.rank() + step) % 2 == 0));
        engine->step();
      }
      // Each rank's gradient of 1 counts a half, twice.
      for (const at::Tensor& parameter : {engine->module().left, engine->module().right}) {
        if (!parameter.detach().equal(at::full({3}, 0.5))) return "stage " + std::to_string(stage);
      }
    }
    return "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

// A weight in two recomputed parts gets its gradient in two pieces. After a step in which it got one, its bucket leaves
// with the first, and the second is late: here on one rank only.
TEST(ModuleEngineUse, APieceThatComesLateOnOneRankIsSummedOnAll) {
  struct Weight : torch::nn::Module {
    at::Tensor weight = register_parameter("weight", at::ones({3}));
  };
  struct Shared : torch::nn::Module {
    at::Tensor first = register_parameter("first", at::ones({3}));
    std::shared_ptr<Weight> inner = register_module("inner", std::make_shared<Weight>());  // in a bucket of its own
    at::Tensor forward(bool is_twice) {
      const auto part = [this](const std::vector<at::Tensor>& in) { return in.front() + inner->weight; };
      const at::Tensor once = recompute(part, {first * 1});
      return (is_twice ? recompute(part, {once}) : once).sum();
    }
  };
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    for (const bool overlaps : {false, true}) {
      const Json config{{"train_micro_batch_size_per_gpu", 1},
                        {"optimizer", {{"type", "SGD"}, {"params", {{"lr", 0.5}}}}},
                        {"zero_optimization", {{"stage", 2}, {"overlap_comm", overlaps}, {"reduce_bucket_size", 1}}}};
      const auto engine = initialize(std::make_shared<Shared>(), world, config);
      for (const bool is_twice : {false, world.rank() == 0}) {
        engine->backward(engine->forward(is_twice));
        engine->step();
      }
      // The second step has two pieces of 1 on the one rank, one on the other, each counting a half.
      if (!engine->module().inner->weight.detach().equal(at::full({3}, 1 - 0.5 - 0.75))) return "the shared weight";
      if (!engine->module().first.detach().equal(at::full({3}, 1 - 0.5 - 0.5))) return "the first weight";
    }
    return "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(ModuleEngineUse, StageThreeNamesRanksThatUseDifferentParameters) {
  struct Pair : torch::nn::Module {
    at::Tensor weight = register_parameter("weight", at::ones({8}));
  };
  struct Choice : torch::nn::Module {
    std::shared_ptr<Pair> left = register_module("left", std::make_shared<Pair>());
    std::shared_ptr<Pair> right = register_module("right", std::make_shared<Pair>());
    at::Tensor forward(bool is_left) { return ((is_left ? left : right)->weight * 2).sum(); }
  };
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    const Json config{{"train_micro_batch_size_per_gpu", 1}, {"zero_optimization", {{"stage", 3}}}};
    const auto engine = initialize(std::make_shared<Choice>(), world, config);
    engine->backward(engine->forward(world.rank() == 0));
    engine->step();
    return "a step was made";
  });
  EXPECT_THAT(result.message, HasSubstr("different parameters"));
}

TEST(ModuleEngineUse, EvaluationChangesNothing) {
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    for (const int stage : {0, 3}) {
      const Json config{{"train_micro_batch_size_per_gpu", kSamples}, {"zero_optimization", {{"stage", stage}}}};
      const auto engine = initialize(make_net(false, 1), world, config);
      engine->eval();
      const auto [tokens, targets] = batch(0);
      const double first = engine->forward(tokens, targets).item<double>();
      if (engine->forward(tokens, targets).item<double>() != first) return "evaluation is not repeatable";
      if (engine->micro_steps() != 0) return "evaluation counts as a micro step";
      engine->train();
      engine->backward(engine->forward(tokens, targets));
      engine->step();
      engine->eval();
      if (engine->forward(tokens, targets).item<double>() == first) return "nothing was learnt";
    }
    return "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(ModuleEngineUse, AFrozenParameterIsPartOfTheModel) {
  const TempDir folder;
  const std::string file = (folder.path() / "model_info.json").string();
  const RankResult result = on_worlds(1, [&](World& world) -> std::string {
    const Json config{
        {"train_micro_batch_size_per_gpu", kSamples},
        {"autotuning", {{"enabled", true}, {"model_info", {{"profile", true}}}, {"model_info_path", file}}}};
    const auto engine = initialize(make_net(false, 1), world, config);
    const auto [tokens, targets] = batch(0);
    engine->forward(tokens, targets);
    return "the trial was not ended";
  });
  ASSERT_EQ(result.kind, FailureKind::none) << result.message;
  const Json info = Json::parse(read_text(file));
  EXPECT_EQ(info.at("num_params"), info.at("trainable_num_params").get<int64_t>() + 1);
}

TEST(ModuleEngineUse, ALossOfOneNumberMayHaveDimensions) {
  const RankResult result = on_worlds(1, [](World& world) -> std::string {
    const Json config{{"train_micro_batch_size_per_gpu", kSamples}};
    const auto engine = initialize(make_net(false, 1), world, config);
    const auto [tokens, targets] = batch(0);
    engine->backward(engine->forward(tokens, targets).reshape({1, 1}));
    engine->step();
    return engine->global_steps() == 1 ? "" : "no step was made";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(ModuleEngineUse, CallsInAWrongOrderAreRefused) {
  const RankResult result = on_worlds(1, [](World& world) -> std::string {
    const Json config{{"train_micro_batch_size_per_gpu", kSamples}};
    const auto engine = initialize(make_net(false, 1), world, config);
    const auto [tokens, targets] = batch(0);
    std::string text = error_of([&] { engine->backward(at::ones({})); });
    if (text.find("without a forward()") == std::string::npos) return text;
    const at::Tensor loss = engine->forward(tokens, targets);
    text = error_of([&] { engine->step(); });
    if (text.find("without a backward()") == std::string::npos) return text;
    text = error_of([&] { engine->backward(at::ones({2})); });
    if (text.find("needs a scalar loss") == std::string::npos) return text;
    engine->backward(loss);
    text = error_of([&] { engine->backward(loss); });
    if (text.find("backward() twice") == std::string::npos) return text;
    text = error_of([&] { initialize(std::make_shared<torch::nn::Module>(), world, config); });
    return text.find("nothing to train") == std::string::npos ? text : "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

}  // namespace
}  // namespace dsat::trainer
