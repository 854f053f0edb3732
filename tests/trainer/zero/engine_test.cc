// The engine on one rank: it learns, an abandoned step changes nothing, and all stages train the same model.
// What ranks do together is tested with the program and in module_engine_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/rendezvous.h"
#include "device/budget_allocator.h"
#include "model/model_module.h"
#include "zero/zero_engine.h"

namespace dsat::trainer {
namespace {

Settings settings_of(int stage) {
  Settings settings;
  settings.stage = stage;
  settings.batch = {4, 1, 4};
  settings.optimizer.lr = 0.01;
  return settings;
}

std::unique_ptr<Model> small_mlp() {
  ModelOptions options;
  options.kind = ModelKind::mlp;
  options.layers = 2;
  options.hidden = 16;
  return make_model(options, at::kFloat);
}

struct Rig {
  explicit Rig(int stage)
      : chain(small_mlp()), comm(join({})), engine(*parts_of(chain), settings_of(stage), *comm, at::kCPU, 1) {}
  float step(bool update = true) {
    engine.begin_step();
    engine.begin_micro_step();
    const at::Tensor loss = chain.forward(chain.model().batch(RandomStream(1, ~uint64_t{0}), 4));
    engine.end_forward();
    engine.backward(loss, 1, true);
    update ? engine.step() : engine.abandon_step();
    return loss.item<float>();
  }

  ModelModule chain;
  std::unique_ptr<Comm> comm;
  ZeroEngine engine;
};

class EngineTest : public ::testing::TestWithParam<int> {};

TEST_P(EngineTest, LearnsABatchByHeart) {
  Rig rig(GetParam());
  const float first = rig.step();
  float last = first;
  for (int i = 0; i < 60; ++i) last = rig.step();
  EXPECT_LT(last, 0.5f * first);
}

TEST_P(EngineTest, AnAbandonedStepChangesNothing) {
  Rig rig(GetParam());
  const float first = rig.step(false);
  EXPECT_EQ(rig.step(false), first);
  rig.step();
  EXPECT_NE(rig.step(false), first);
}

TEST_P(EngineTest, BetweenStepsItHoldsModelStatesOnly) {
  set_device_memory(install_budget(std::nullopt));
  Rig rig(GetParam());
  const uint64_t before = memory_in_use();
  rig.step();
  const uint64_t after_one = memory_in_use();
  EXPECT_EQ(after_one, before);
  rig.step();
  EXPECT_EQ(memory_in_use(), after_one);
}

INSTANTIATE_TEST_SUITE_P(Stages, EngineTest, ::testing::Values(0, 1, 2, 3));

TEST(EngineStagesTest, EveryStageTrainsTheSameModel) {
  Rig expected(0);
  std::vector<float> losses;
  for (int i = 0; i < 5; ++i) losses.push_back(expected.step());
  for (int stage : {1, 2, 3}) {
    Rig rig(stage);
    for (float loss : losses) EXPECT_NEAR(rig.step(), loss, 1e-6 * loss) << "stage " << stage;
  }
}

}  // namespace
}  // namespace dsat::trainer
