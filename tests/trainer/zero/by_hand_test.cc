// What a program does to an engine's parameters and gradients by itself: at every stage it is kept, or refused by name.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>

#include "dsat/trainer/engine.h"
#include "support/error_of.h"
#include "support/temp_dir.h"
#include "trainer/on_worlds.h"

namespace dsat::trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Json config_of(int stage, bool bf16 = false, double lr = 0.5) {
  Json config{{"train_micro_batch_size_per_gpu", 1},
              {"optimizer", {{"type", "SGD"}, {"params", {{"lr", lr}}}}},
              {"zero_optimization", {{"stage", stage}}}};
  if (bf16) config["bf16"]["enabled"] = true;
  return config;
}

// Its loss has the gradient 1 in each element.
struct Weight : torch::nn::Module {
  at::Tensor weight = register_parameter("weight", at::ones({5}));
  at::Tensor forward() { return weight.sum(); }
};

struct Layers : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(4, 6));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(6, 3));
  at::Tensor forward(const at::Tensor& x) { return second->forward(at::relu(first->forward(x))); }
};

template <class M>
void step(Engine<M>& engine) {
  engine.backward(engine.forward());
  engine.step();
}

std::string has(const std::string& text, const std::string& part) {
  return text.find(part) == std::string::npos ? "\"" + text + "\" has no \"" + part + "\"" : "";
}

// Runs `body` for each stage on two ranks.
class ByHand : public ::testing::TestWithParam<int> {
 protected:
  static void expect_right(const std::function<std::string(World&)>& body) {
    const RankResult result = on_worlds(2, body);
    EXPECT_EQ(result.kind, FailureKind::none) << result.message;
  }
};
INSTANTIATE_TEST_SUITE_P(Stages, ByHand, ::testing::Values(0, 1, 2, 3));

TEST_P(ByHand, AGradientOutsideOfTheEngineNamesItsParameter) {
  expect_right([](World& world) {
    const auto engine = initialize(std::make_shared<Weight>(), world, config_of(GetParam()));
    const at::Tensor loss = engine->forward();
    const std::string text = error_of([&] { loss.backward(); });
    return has(text, "parameter weight got a gradient outside of engine->backward()");
  });
}

// Two halves of a model in an engine each train as the whole one does in plain LibTorch.
TEST_P(ByHand, SeveralEnginesTrainOnOneLoss) {
  expect_right([](World& world) -> std::string {
    torch::manual_seed(3);
    Layers whole;
    const at::Tensor x = at::randn({2, 4});
    const auto first = std::make_shared<torch::nn::LinearImpl>(4, 6),
               second = std::make_shared<torch::nn::LinearImpl>(6, 3);
    {
      const torch::NoGradGuard no_graph;
      first->weight.copy_(whole.first->weight), first->bias.copy_(whole.first->bias);
      second->weight.copy_(whole.second->weight), second->bias.copy_(whole.second->bias);
    }
    const auto one = initialize(first, world, config_of(GetParam(), false, 0.1));
    const auto other = initialize(second, world, config_of(GetParam(), false, 0.1));
    torch::optim::SGD optimizer(whole.parameters(), torch::optim::SGDOptions(0.1));
    for (int i = 0; i < 4; ++i) {
      optimizer.zero_grad();
      const at::Tensor expected = whole.forward(x).pow(2).sum();
      expected.backward();
      optimizer.step();
      const at::Tensor loss = other->forward(at::relu(one->forward(x))).pow(2).sum();
      if (!loss.allclose(expected, 1e-5)) return "another loss in step " + std::to_string(i);
      backward(loss, {one.get(), other.get()});
      one->step();
      other->step();
    }
    return "";
  });
}

// As a generator is trained through a discriminator.
TEST_P(ByHand, GradientsOfAnotherEngineAreDropped) {
  expect_right([](World& world) -> std::string {
    const auto one = initialize(std::make_shared<Weight>(), world, config_of(GetParam()));
    const auto other = initialize(std::make_shared<Weight>(), world, config_of(GetParam()));
    one->backward(one->forward() * other->forward());  // its gradient is the other's sum, 5
    one->step();
    other->backward(other->forward());
    other->step();
    // A forward without a backward of its own is no step.
    one->backward(one->forward() * other->forward());
    one->step();
    other->edit_parameters([] {});
    one->edit_parameters([&] { one->module().weight.fill_(1 - 0.5 * 5); });
    one->eval(), other->eval();
    if (one->forward().item<double>() != 5 * (1 - 0.5 * 5)) return "the one that was trained";
    return other->forward().item<double>() == 5 * 0.5 ? "" : "the other has gradients of the first loss";
  });
}

TEST_P(ByHand, ASecondBackwardOfOneLossNamesTheWayForSeveralEngines) {
  expect_right([](World& world) {
    const auto one = initialize(std::make_shared<Weight>(), world, config_of(GetParam()));
    const auto other = initialize(std::make_shared<Weight>(), world, config_of(GetParam()));
    const at::Tensor loss = one->forward() * other->forward();
    one->backward(loss);
    return has(error_of([&] { other->backward(loss); }), "backward(loss, {&one, &other})");
  });
}

// Rank 0's values count, and the optimizer goes on from them.
TEST_P(ByHand, AnEditIsKept) {
  expect_right([](World& world) -> std::string {
    for (const bool bf16 : {false, true}) {
      const auto engine = initialize(std::make_shared<Weight>(), world, config_of(GetParam(), bf16));
      at::Tensor& weight = engine->module().weight;
      step(*engine);
      engine->edit_parameters([&] { weight.fill_(2 + world.rank()); });
      step(*engine);
      // A tensor that takes the place of the parameter's.
      if (engine->forward().item<double>() != 5 * 1.5) return bf16 ? "in bf16" : "in fp32";
      engine->backward(engine->forward());
      engine->step();
      engine->edit_parameters([&] { weight.set_data(at::full({5}, 4, weight.options())); }, {weight});
      step(*engine);
      engine->eval();
      if (engine->forward().item<double>() != 5 * 3.5) return bf16 ? "other memory in bf16" : "other memory in fp32";
    }
    return "";
  });
}

// A step of 0.0008 is less than bf16 shows below 1, three are not: the master copy has added them up.
TEST_P(ByHand, AnEditOfSomeElementsLeavesTheMasterCopyOfTheOthers) {
  expect_right([](World& world) -> std::string {
    const auto engine = initialize(std::make_shared<Weight>(), world, config_of(GetParam(), true, 0.0008));
    at::Tensor& weight = engine->module().weight;
    step(*engine);
    engine->edit_parameters([&] { weight[0] = 3; });
    step(*engine);
    step(*engine);
    bool is_right = false;
    engine->edit_parameters(
        [&] { is_right = weight[1].item<double>() == 0.99609375 && weight[0].item<double>() > 2.9; });
    return is_right ? "" : "the other elements";
  });
}

TEST_P(ByHand, AnEditOutsideIsRefusedByName) {
  expect_right([](World& world) -> std::string {
    const torch::NoGradGuard no_graph;
    const auto engine = initialize(std::make_shared<Weight>(), world, config_of(GetParam()));
    engine->module().weight.zero_();
    std::string wrong = has(error_of([&] { engine->forward(); }), "parameter weight was changed in place");
    const auto other = initialize(std::make_shared<Weight>(), world, config_of(GetParam()));
    other->module().weight.set_data(at::ones({5}));
    wrong += has(error_of([&] { other->forward(); }), "parameter weight was given other memory");
    const auto third = initialize(std::make_shared<Layers>(), world, config_of(GetParam()));
    wrong +=
        has(error_of([&] {
              third->edit_parameters([&] { third->module().second->weight.zero_(); }, {third->module().first->weight});
            }),
            "parameter second.weight was changed in place");
    return wrong;
  });
}

TEST_P(ByHand, AWrongShapeNamesTheLayer) {
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    struct Wrong : Layers {
      at::Tensor forward(const at::Tensor& x) { return second->forward(first->forward(x).narrow(1, 0, 5)).sum(); }
    };
    const auto engine = initialize(std::make_shared<Wrong>(), world, config_of(GetParam()));
    engine->forward(at::ones({2, 4}));
    return "it was computed";
  });
  EXPECT_THAT(result.message,
              AllOf(HasSubstr("forward failed in or after layer second (second."), HasSubstr("mat1 and mat2")));
}

// A parameter whose group has no decay and half the rate, beside one that has both.
TEST_P(ByHand, ParameterGroupsHaveDecayAndRateOfTheirOwn) {
  struct Pair : torch::nn::Module {
    at::Tensor bias = register_parameter("bias", at::ones({3}));
    at::Tensor weight = register_parameter("weight", at::ones({2, 2}));
    at::Tensor forward() { return weight.sum() + bias.sum(); }
  };
  expect_right([](World& world) -> std::string {
    for (const char* optimizer : {"SGD", "AdamW"}) {
      Json config = config_of(GetParam());
      config["optimizer"] = {{"type", optimizer}, {"params", {{"lr", 0.5}, {"weight_decay", 0.1}, {"eps", 0}}}};
      const auto pair = std::make_shared<Pair>();
      const auto engine = initialize(pair, world, config, {{biases_and_norms(pair->parameters()), 0.0, 0.5}});
      step(*engine);
      std::string wrong;
      engine->edit_parameters([&] {
        // SGD adds the decay to the gradient 1; AdamW shrinks by itself and moves by the rate.
        const double weight = std::string(optimizer) == "SGD" ? 1 - 0.5 * 1.1 : 1 * (1 - 0.5 * 0.1) - 0.5;
        if (!pair->weight.allclose(at::full({2, 2}, weight))) wrong = "the weight";
        if (!pair->bias.allclose(at::full({3}, 0.75))) wrong = "the bias";
      });
      if (!wrong.empty()) return wrong + " with " + optimizer;
    }
    return "";
  });
}

TEST(ByHandRates, ARateThatWasSetCountsUntilTheScheduleIsBack) {
  const RankResult result = on_worlds(1, [](World& world) -> std::string {
    const auto engine = initialize(std::make_shared<Weight>(), world, config_of(0));
    engine->set_lr(0.25);
    if (engine->get_lr() != 0.25) return "set_lr";
    engine->set_lr_schedule([](int64_t updates) { return 1.0 / static_cast<double>(updates + 1); });
    step(*engine);
    if (engine->get_lr() != 0.5) return "the program's own schedule";
    engine->set_lr_schedule({});
    if (engine->get_lr() != 0.5) return "the configuration's";
    return has(error_of([&] { engine->set_lr(-1); }), "set_lr(-1)");
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

TEST(ByHandRates, GroupsOfOtherTensorsAreRefused) {
  const RankResult result = on_worlds(1, [](World& world) -> std::string {
    const auto net = std::make_shared<Layers>();
    const auto with = [&](const std::vector<ParameterGroup>& groups) {
      return error_of([&] { initialize(net, world, config_of(0), groups); });
    };
    return has(with({{{at::ones({2})}, 0.0}}), "parameter group 0 has a tensor that is no trained parameter") +
           has(with({{{net->first->bias}, 0.0}, {{net->first->bias}, 0.0}}), "first.bias is in two parameter groups");
  });
  EXPECT_EQ(result.kind, FailureKind::none) << result.message;
}

// Master copies, further names and buffers, through both formats, into an engine of another stage.
TEST_P(ByHand, WeightsGoOutAndComeIn) {
  struct Tied : torch::nn::Module {
    std::shared_ptr<Layers> layers = register_module("layers", std::make_shared<Layers>());
    at::Tensor again = register_parameter("again", layers->first->weight);
    at::Tensor count = register_buffer("count", at::full({2}, 7, at::kLong));
    at::Tensor forward() { return layers->forward(at::ones({1, 4}, again.options())).sum(); }
  };
  const TempDir folder;
  expect_right([&](World& world) -> std::string {
    torch::manual_seed(5);
    const auto engine = initialize(std::make_shared<Tied>(), world, config_of(GetParam(), /*bf16=*/true, 0.01));
    step(*engine);
    const auto state = engine->full_state_dict();
    if ((state.size() == 6) != (world.rank() == 0)) return "there are " + std::to_string(state.size()) + " tensors";
    for (const char* name : {"weights.pt", "weights.safetensors"}) {
      const std::string file = (folder.path() / name).string();
      engine->save_weights(file);
      torch::manual_seed(9);
      const auto other = initialize(std::make_shared<Tied>(), world, config_of((GetParam() + 1) % 4));
      other->load_weights(file);
      const auto loaded = other->full_state_dict();
      for (size_t i = 0; i < loaded.size(); ++i) {
        const auto same =
            std::find_if(state.begin(), state.end(), [&](const auto& one) { return one.first == loaded[i].first; });
        if (same == state.end() || !same->second.equal(loaded[i].second)) return loaded[i].first + " in " + name;
      }
    }
    return "";
  });
}

TEST(ByHandAtStageThree, APointerToAParameterThatIsNotThereNamesIt) {
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    const auto engine = initialize(std::make_shared<Layers>(), world, config_of(3));
    const auto* const bias = static_cast<const float*>(engine->module().second->bias.data_ptr());
    return "read " + std::to_string(bias[1]);
  });
  EXPECT_EQ(result.kind, FailureKind::error);
  EXPECT_THAT(result.message, HasSubstr("parameter second.bias was read by a pointer (data_ptr())"));
}

TEST(ByHandOnOneRank, AnEditThatTheOthersDoNotMakeEndsTheTraining) {
  const RankResult result = on_worlds(2, [](World& world) -> std::string {
    const auto engine = initialize(std::make_shared<Weight>(), world, config_of(1));
    if (world.rank() == 0) engine->edit_parameters([&] { engine->module().weight.zero_(); });
    step(*engine);
    return "";
  });
  EXPECT_THAT(result.message, HasSubstr("edit_parameters()"));
}

}  // namespace
}  // namespace dsat::trainer
