// Pipelines of a user's layers, between real processes, against the same modules trained in one piece by LibTorch.
// A rank reports what it found wrong through its result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <functional>
#include <sstream>

#include "comm/rendezvous.h"
#include "dsat/error.h"
#include "model/layer_chain.h"
#include "pipeline/pipeline_runner.h"
#include "ranks/launcher.h"
#include "trainer/on_ranks.h"

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kWords = 11, kWidth = 6, kSamples = 4, kSteps = 4;
constexpr uint64_t kSeed = 3;

at::Tensor as_words(torch::nn::EmbeddingImpl& embedding, const at::Tensor& x) {
  return at::linear(x, embedding.weight);
}

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target) {
  return at::cross_entropy_loss(output.to(at::kFloat), target);
}

// Words in, words out, with one matrix for both: the first and the last stage hold a copy each.
std::vector<LayerSpec> tied_layers() {
  const auto look_up = [](torch::nn::EmbeddingImpl& embedding, const at::Tensor& x) { return embedding.forward(x); };
  return {tied_layer<torch::nn::Embedding>("words", look_up, kWords, kWidth), layer<torch::nn::Linear>(kWidth, kWidth),
          [](const at::Tensor& x) { return at::tanh(x); }, layer<torch::nn::Linear>(kWidth, kWidth),
          tied_layer<torch::nn::Embedding>("words", as_words, kWords, kWidth)};
}

Batch batch_of(int64_t number) {
  const RandomStream stream(kSeed, static_cast<uint64_t>(number));
  const at::Tensor words = random_integers(stream, {kSamples, 2}, kWords);
  return {words.select(1, 0).contiguous(), words.select(1, 1).contiguous()};
}

NextBatch batches(int64_t step, int64_t accumulation, const ModelParallelUnit& unit) {
  int64_t micro_step = step * accumulation;
  return [=]() mutable { return batch_of(micro_step++ * unit.data_parallel_world_size + unit.data_parallel_rank); };
}

// The whole chain in this process, as LibTorch's own modules and optimizer train it.
class Reference {
 public:
  explicit Reference(std::vector<LayerSpec> layers)
      : chain_(chain_of(PipelineModule(std::move(layers), cross_entropy, 1), kSeed)),
        layers_(chain_->build({0, chain_->layers().size()})) {
    for (const auto& group : layers_.parts.groups) {
      for (const ModelParameter& parameter : group) parameters_.push_back(parameter.tensor);
    }
  }

  at::Tensor loss(const Batch& batch) const {
    at::Tensor x = batch.input;
    for (const auto& layer : layers_.forward) x = layer(x);
    return chain_->loss(x, batch.target);
  }

  std::vector<double> train(int64_t steps, int64_t micro_batches, double lr, double clip) {
    torch::optim::SGD optimizer(parameters_, torch::optim::SGDOptions(lr));
    std::vector<double> losses;
    for (int64_t step = 0; step < steps; ++step) {
      double sum = 0;
      for (int64_t i = 0; i < micro_batches; ++i) {
        const at::Tensor one = loss(batch_of(step * micro_batches + i));
        (one / static_cast<double>(micro_batches)).backward();
        sum += one.item<double>();
      }
      if (clip > 0) torch::nn::utils::clip_grad_norm_(parameters_, clip);
      optimizer.step();
      optimizer.zero_grad();
      losses.push_back(sum / static_cast<double>(micro_batches));
    }
    return losses;
  }

 private:
  std::unique_ptr<LayerChain> chain_;
  StageLayers layers_;
  Tensors parameters_;
};

Settings settings_of(int stages, int zero_stage, int64_t accumulation) {
  Settings settings;
  settings.stage = zero_stage;
  settings.pipeline.stages = stages;
  settings.pipeline.partition = PartitionMethod::uniform;
  settings.batch.micro_batch = kSamples;
  settings.batch.accumulation = accumulation;
  settings.optimizer.kind = OptimizerSettings::Kind::sgd;
  settings.optimizer.lr = 0.5;
  return settings;
}

std::vector<double> train(PipelineRunner& runner, const Settings& settings, int64_t steps = kSteps) {
  std::vector<double> losses;
  for (int64_t step = 0; step < steps; ++step) {
    losses.push_back(runner.train_batch(batches(step, settings.batch.accumulation, runner.unit())));
  }
  return losses;
}

std::string difference(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::abs(found.at(i) - expected[i]) <= tolerance * std::abs(expected[i])) continue;
    std::ostringstream text;
    text.precision(9);
    text << "step " << i << ": loss " << found[i] << ", expected " << expected[i];
    return text.str();
  }
  return "";
}

struct Shape {
  int ranks, stages, zero_stage;
  int64_t accumulation;
};

class TiedPipeline : public ::testing::TestWithParam<Shape> {};

TEST_P(TiedPipeline, TrainsLikeTheModulesInOnePiece) {
  const Shape shape = GetParam();
  const RankResult result = on_ranks(shape.ranks, [&](Comm& comm) -> std::string {
    const int64_t micro_batches = shape.accumulation * shape.ranks / shape.stages;
    const std::vector<double> expected = Reference(tied_layers()).train(kSteps, micro_batches, 0.5, 0);
    const Settings settings = settings_of(shape.stages, shape.zero_stage, shape.accumulation);
    const auto chain = chain_of(PipelineModule(tied_layers(), cross_entropy, shape.stages), kSeed);
    PipelineRunner runner(*chain, settings, comm, kSeed, /*activation_checkpointing=*/false);
    return difference(train(runner, settings), expected, 1e-5);
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

INSTANTIATE_TEST_SUITE_P(Shapes, TiedPipeline,
                         ::testing::Values(Shape{1, 1, 0, 2}, Shape{2, 2, 0, 3}, Shape{2, 2, 1, 1}, Shape{4, 2, 1, 3},
                                           Shape{3, 3, 0, 4}, Shape{6, 3, 1, 2}),
                         [](const auto& info) {
                           const Shape& s = info.param;
                           return "Ranks" + std::to_string(s.ranks) + "Stages" + std::to_string(s.stages) + "Zero" +
                                  std::to_string(s.zero_stage) + "Accumulation" + std::to_string(s.accumulation);
                         });

TEST(Pipeline, WhatLayersShareCountsOnceInTheModelsSize) {
  const ChainLayer whole = chain_of(PipelineModule(tied_layers(), cross_entropy, 2), kSeed)->total();
  EXPECT_EQ(whole.num_params, kWords * kWidth + 2 * (kWidth * kWidth + kWidth));
  EXPECT_EQ(whole.num_tensors, 5u);
}

TEST(Pipeline, ClipsByTheNormOfTheWholeModelWithSharedParametersOnce) {
  for (const int zero_stage : {0, 1}) {
    const RankResult result = on_ranks(4, [&](Comm& comm) -> std::string {
      Settings settings = settings_of(2, zero_stage, 2);
      settings.gradient_clipping = 0.1;
      const std::vector<double> expected = Reference(tied_layers()).train(kSteps, 4, 0.5, 0.1);
      const auto chain = chain_of(PipelineModule(tied_layers(), cross_entropy, 2), kSeed);
      PipelineRunner runner(*chain, settings, comm, kSeed, false);
      return difference(train(runner, settings), expected, 1e-5);
    });
    EXPECT_EQ(result.kind, FailureKind::none) << result.message;
  }
}

// 8 bits of mantissa: what a step rounds, relative to the loss, is a few times 2^-9; four steps add up.
TEST(Pipeline, Bf16FollowsFp32) {
  const RankResult result = on_ranks(2, [&](Comm& comm) -> std::string {
    Settings settings = settings_of(2, 1, 3);
    settings.bf16 = true;
    const std::vector<double> expected = Reference(tied_layers()).train(kSteps, 3, 0.5, 0);
    const auto chain = chain_of(PipelineModule(tied_layers(), cross_entropy, 2), kSeed);
    PipelineRunner runner(*chain, settings, comm, kSeed, false);
    return difference(train(runner, settings), expected, 0.01);
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

std::vector<LayerSpec> random_layers() {
  return {layer<torch::nn::Embedding>(kWords, kWidth),
          layer<torch::nn::Linear>(kWidth, kWidth),
          layer<torch::nn::Dropout>(0.5),
          layer<torch::nn::Linear>(kWidth, kWidth),
          layer<torch::nn::Dropout>(0.5),
          layer<torch::nn::Linear>(kWidth, kWords)};
}

TEST(Pipeline, RecomputedLayersDrawTheSameRandomNumbers) {
  const RankResult result = on_ranks(2, [&](Comm& comm) -> std::string {
    const auto chain = chain_of(PipelineModule(random_layers(), cross_entropy, 2), kSeed);
    Settings settings = settings_of(2, 0, 3);
    std::vector<std::vector<double>> losses;
    for (const int64_t interval : {0, 1, 2}) {
      settings.pipeline.checkpoint_interval = interval;
      PipelineRunner runner(*chain, settings, comm, kSeed, false);
      at::manual_seed(5);
      losses.push_back(train(runner, settings));
    }
    if (losses[1] != losses[0] || losses[2] != losses[0]) return "losses differ";
    return "";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(Pipeline, EvaluatesWithoutTrainingAndWithoutDropout) {
  const RankResult result = on_ranks(4, [&](Comm& comm) -> std::string {
    const Settings settings = settings_of(2, 1, 2);
    const auto chain = chain_of(PipelineModule(tied_layers(), cross_entropy, 2), kSeed);
    PipelineRunner runner(*chain, settings, comm, kSeed, false);
    const Reference reference(tied_layers());
    double expected = 0;
    for (int64_t i = 0; i < 4; ++i) expected += reference.loss(batch_of(i)).item<double>() / 4;
    for (int round = 0; round < 2; ++round) {
      const double loss = runner.eval_batch(batches(0, 2, runner.unit()));
      if (std::abs(loss - expected) > 1e-5 * expected) return "evaluation: " + std::to_string(loss);
    }
    const double trained = runner.train_batch(batches(0, 2, runner.unit()));
    if (std::abs(trained - expected) > 1e-5 * expected) return "training: " + std::to_string(trained);
    const double after = runner.eval_batch(batches(0, 2, runner.unit()));
    if (after >= expected) return "no better after a step: " + std::to_string(after);

    const auto random = chain_of(PipelineModule(random_layers(), cross_entropy, 2), kSeed);
    PipelineRunner dropping(*random, settings, comm, kSeed, false);
    const double once = dropping.eval_batch(batches(0, 2, dropping.unit()));
    return once == dropping.eval_batch(batches(0, 2, dropping.unit())) ? "" : "dropout in evaluation";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(Pipeline, ModulesThatWereThereBeforeGetTheFirstRanksValues) {
  const RankResult result = on_ranks(2, [&](Comm& comm) -> std::string {
    at::manual_seed(static_cast<uint64_t>(comm.rank()));
    const auto made = std::make_shared<torch::nn::LinearImpl>(kWidth, kWords);
    const auto held = torch::nn::Embedding(kWords, kWidth);
    const std::vector<LayerSpec> layers = {held, torch::nn::AnyModule(torch::nn::Linear(kWidth, kWidth)), made};
    const auto chain = chain_of(PipelineModule(layers, cross_entropy, 1), kSeed);
    const Settings settings = settings_of(1, 0, 1);
    PipelineRunner runner(*chain, settings, comm, kSeed, false);
    const double before = runner.train_batch(batches(0, 1, runner.unit()));
    if (runner.train_batch(batches(0, 1, runner.unit())) >= before) return "it does not learn";
    const double norm = made->weight.norm().item<double>();
    return sum_over_ranks(comm, {norm})[0] == 2 * norm ? "" : "the ranks' parameters differ";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(Pipeline, FirstAndLastStageReadDataAndTheLastReports) {
  const RankResult result = on_ranks(3, [&](Comm& comm) -> std::string {
    const auto chain = chain_of(PipelineModule(tied_layers(), cross_entropy, 3), kSeed);
    const Settings settings = settings_of(3, 0, 1);
    const ModelParallelUnit unit = PipelineRunner(*chain, settings, comm, kSeed, false).unit();
    if (unit.data_parallel_rank != 0 || unit.data_parallel_world_size != 1) return "data-parallel place";
    if (unit.should_report_metrics != (comm.rank() == 2)) return "should_report_metrics";
    return unit.should_build_data_loader == (comm.rank() != 1) ? "" : "should_build_data_loader";
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

// As a program of the user's own writes it: from a configuration, with a loader's iterator.
struct Iterator {
  NextBatch source;
  Tensors next() {
    const Batch batch = source();
    return {batch.input, batch.target};
  }
};

TEST(Pipeline, TheEngineTrainsAndEvaluatesFromAnIterator) {
  const RankResult result = on_ranks(2, [&](Comm& comm) -> std::string {
    const Json config = {{"train_micro_batch_size_per_gpu", kSamples},
                         {"gradient_accumulation_steps", 2},
                         {"optimizer", {{"type", "SGD"}, {"params", {{"lr", 0.5}}}}},
                         {"zero_optimization", {{"stage", 1}}}};
    WorldOptions options;
    options.seed = kSeed;
    World world(comm.split({0, 1}), options, config);
    PipelineModule module(tied_layers(), cross_entropy, 2, PartitionMethod::uniform);
    const auto engine = initialize(module, world, config);
    if (engine->train_batch_size() != 2 * kSamples || engine->num_stages() != 2) return "sizes";
    if (engine->num_params() != kWords * kWidth + 2 * (kWidth * kWidth + kWidth)) return "num_params";
    std::vector<double> losses;
    for (int64_t step = 0; step < kSteps; ++step) {
      Iterator iterator{batches(step, 2, engine->mpu())};
      losses.push_back(engine->train_batch(iterator));
    }
    if (engine->global_steps() != kSteps) return "global_steps";
    Iterator iterator{batches(0, 2, engine->mpu())};
    const double evaluated = engine->eval_batch(iterator);
    Reference reference(tied_layers());
    const std::string wrong = difference(losses, reference.train(kSteps, 2, 0.5, 0), 1e-5);
    if (!wrong.empty()) return wrong;
    const double mean = (reference.loss(batch_of(0)) + reference.loss(batch_of(1))).item<double>() / 2;
    return difference({evaluated}, {mean}, 1e-5);
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

int layers_held = 0;
struct CountedLayer : torch::nn::Module {
  explicit CountedLayer(int64_t width) {
    register_parameter("weight", at::zeros({width, width}));
    ++layers_held;
  }
  ~CountedLayer() override { --layers_held; }
  at::Tensor forward(const at::Tensor& x) { return x; }
};

// The first layer has most of the parameters: cut by them it is a stage of its own.
TEST(Pipeline, ThePartitionOfAModuleIsThatOfItsEngine) {
  for (const auto& [method, held] : {std::pair{PartitionMethod::parameters, 1}, {PartitionMethod::uniform, 2}}) {
    const RankResult result = on_ranks(2, [&, method = method, held = held](Comm& comm) -> std::string {
      const Json config = {{"zero_optimization", {{"stage", 1}}}};
      World world(comm.split({0, 1}), WorldOptions(), config);
      std::vector<LayerSpec> layers;
      for (const int64_t width : {20, 2, 2, 2}) layers.push_back(layer<CountedLayer>(width));
      const auto engine = initialize(PipelineModule(layers, cross_entropy, 2, method), world, config);
      if (layers_held == (engine->stage() == 0 ? held : 4 - held)) return "";
      return "stage " + std::to_string(engine->stage()) + " has " + std::to_string(layers_held) + " layers";
    });
    EXPECT_EQ(result.kind, FailureKind::none) << result.message;
  }
}

TEST(Pipeline, RefusesAMicroBatchWithoutATarget) {
  const RankResult result = on_ranks(1, [&](Comm& comm) -> std::string {
    World world(comm.split({0}), WorldOptions(), Json::object());
    const auto engine = initialize(PipelineModule(tied_layers(), cross_entropy, 1), world, Json::object());
    engine->train_batch([] { return Tensors{batch_of(0).input}; });
    return "it was trained";
  });
  EXPECT_THAT(result.message, HasSubstr("has 1 tensors"));
}

TEST(Pipeline, RefusesStagesThatTheConfigurationContradicts) {
  const RankResult result = on_ranks(2, [&](Comm& comm) -> std::string {
    const Json config = {{"pipeline", {{"stages", 1}}}};
    World world(comm.split({0, 1}), WorldOptions(), config);
    initialize(PipelineModule(tied_layers(), cross_entropy, 2), world, config);
    return "it was built";
  });
  EXPECT_THAT(result.message, AllOf(HasSubstr("num_stages 2"), HasSubstr("pipeline.stages 1")));
}

TEST(Pipeline, RefusesAShorterMicroBatch) {
  const RankResult result = on_ranks(2, [&](Comm& comm) -> std::string {
    const auto chain = chain_of(PipelineModule(tied_layers(), cross_entropy, 2), kSeed);
    const Settings settings = settings_of(2, 0, 2);
    PipelineRunner runner(*chain, settings, comm, kSeed, false);
    int64_t count = 0;
    runner.train_batch([&] {
      Batch batch = batch_of(0);
      const int64_t samples = kSamples - count++;
      return Batch{batch.input.narrow(0, 0, samples), batch.target.narrow(0, 0, samples)};
    });
    return "it was trained";
  });
  EXPECT_THAT(result.message, AllOf(HasSubstr("Float [4, 6]"), HasSubstr("Float [3, 6]")));
}

TEST(Pipeline, RefusesWholeNumbersBetweenStagesAndTooManyStages) {
  const std::vector<LayerSpec> whole = {[](const at::Tensor& x) { return x; }, layer<torch::nn::Embedding>(5, 5)};
  const auto run = [&](int stages) {
    return on_ranks(stages, [&](Comm& comm) -> std::string {
      const auto chain = chain_of(PipelineModule(whole, cross_entropy, stages), kSeed);
      const Settings settings = settings_of(stages, 0, 1);
      PipelineRunner(*chain, settings, comm, kSeed, false).train_batch([] { return batch_of(0); });
      return "it was trained";
    });
  };
  EXPECT_THAT(run(2).message, AllOf(HasSubstr("Long [4]"), HasSubstr("floating-point")));
  EXPECT_THAT(run(3).message, AllOf(HasSubstr("pipeline.stages is 3"), HasSubstr("2 layers")));
}

}  // namespace
}  // namespace dsat::trainer
