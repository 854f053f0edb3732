// The step time model: what a point's configuration means for the traffic of its passes.
#include "zero_model/speed/step_time.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dsat/config/batch.h"
#include "dsat/config/world.h"
#include "plugins/searchers.h"

namespace dsat::tests {
namespace {

using zero_model::Load;
using zero_model::Point;
using zero_model::StepPhase;

// With --num-gpus 1,2,4 and a global batch of 64: micro batches divide 64 / 4, accumulation makes up for the ranks.
TEST(StepTimeModel, EveryTrialHasRanksOfItsOwn) {
  Surface surface;
  config::Space space = small_space({1});
  space.stages[0].axes = {{config::kNumGpusKey, {1, 2, 4}}, {config::kNumNodesKey, {1}}};
  space.micro_batch_divides = 16;
  Study study = make_study(surface, space);
  study.base_config["autotuning"] = {{"num_gpus", 1}, {"num_nodes", 1}};
  study.limits.data_parallel_size = 1;
  zero_model::ModelSpace model(study);
  for (const size_t gpus : {size_t{0}, size_t{1}, size_t{2}}) {
    const Point point{model.arm(zero_model::Configuration{1, {gpus, 0}}), 8};
    const double ranks = std::pow(2, gpus);
    const zero_model::Load load = load_of(model, point);
    EXPECT_EQ(load.ranks, ranks);
    EXPECT_EQ(load.accumulation, 64 / (8 * ranks));
    EXPECT_EQ(model.samples_per_step(point), 64);
  }
}

// Nothing is known of how a fixed pipeline compares with others: its constants hold the bubble.
TEST(StepTimeModel, WithoutAnAxisOfPipelineStagesNothingIsScaled) {
  Study study = make_study(Surface(), small_space({1}));
  study.base_config["pipeline"] = {{"stages", 2}};
  study.base_config[config::kAccumulationKey] = 8;
  zero_model::ModelSpace space(study);
  const zero_model::Load load = load_of(space, {space.arm(zero_model::Configuration{1, {0}}), 4});
  EXPECT_EQ(load.compute, 1);
  EXPECT_EQ(load.params, space.parameters());
}

// A device of 1 ms a sample below a host that takes 50 ms for a pass, 150 at stage 3.
TEST(StepTimeModel, NoPassIsShorterThanItsLaunches) {
  const auto ms = [](int stage, double micro_batch) {
    Load load;
    load.stage = stage;
    load.micro_batch = micro_batch;
    Eigen::VectorXd constants = prior_of(StepPhase::forward, load, 1).mean.array().exp();
    constants[0] = 1000, constants[1] = 1e-6, constants[2] = 50'000, constants[3] = 2;
    return std::exp(log_time(StepPhase::forward, load, constants)) / 1000;
  };
  EXPECT_NEAR(ms(2, 1), 50, 1);
  EXPECT_NEAR(ms(2, 25), 50, 1);
  EXPECT_NEAR(ms(2, 200), 200, 1);
  EXPECT_NEAR(ms(3, 25), 150, 1) << "with a hook for each module";
  EXPECT_NEAR(ms(3, 600), 600, 1);
}

// Stage 3 on 8 ranks: compute takes 100 ms, moving all parameters once 88 ms, a message next to nothing.
class GatheredParameters : public ::testing::Test {
 protected:
  GatheredParameters() {
    load_.stage = 3;
    load_.ranks = 8;
    load_.overlap = true;
    load_.reduce_share = load_.prefetch_share = 0.01;
  }
  static double time_us(StepPhase pass, const Load& load) {
    const zero_model::StepTimePrior prior = prior_of(pass, load, 1);
    Eigen::VectorXd constants = prior.mean.array().exp();
    constants[0] = 1e5;   // compute
    constants[2] = 1;     // launches
    constants[4] = 2e4;   // bytes a microsecond
    constants[5] = 1e-3;  // a message
    return std::exp(log_time(pass, load, constants));
  }

  Load load_;
};

TEST_F(GatheredParameters, WhatIsPrefetchedAllAtOnceHidesBehindNothing) {
  Load whole = load_;
  whole.prefetch_share = 1;
  for (const StepPhase pass : {StepPhase::forward, StepPhase::backward}) {
    EXPECT_GT(time_us(pass, whole), 1.2 * time_us(pass, load_));
  }
}

TEST_F(GatheredParameters, WithoutPrefetchingNothingHides) {
  Load none = load_;
  none.prefetch_share = 0;
  EXPECT_NEAR(time_us(StepPhase::forward, none), 1e5 + 7.0 / 8 * none.param_bytes / 2e4, 1);
  EXPECT_GT(time_us(StepPhase::backward, none), 1.2 * time_us(StepPhase::backward, load_));
}

TEST_F(GatheredParameters, TheForwardPassReducesNothing) {
  Load large = load_;
  large.reduce_share = 1;
  EXPECT_EQ(time_us(StepPhase::forward, large), time_us(StepPhase::forward, load_));
  EXPECT_GT(time_us(StepPhase::backward, large), 1.2 * time_us(StepPhase::backward, load_));
}

TEST_F(GatheredParameters, TheConfigurationSaysHowMuchIsPrefetched) {
  Surface surface;
  surface.num_params = 1e9;
  Study study = make_study(surface, small_space({3}));
  study.base_config["zero_optimization"]["stage3_prefetch_bucket_size"] = 200'000'000;
  zero_model::ModelSpace space(study);
  const Load load = load_of(space, {space.arm(zero_model::Configuration{3, {0, 0}}), 4});
  EXPECT_DOUBLE_EQ(load.prefetch_share, 0.2);
}

// Communication that overlaps in part, offloading and waves: at some stage, every constant counts.
Load everything_at_once(int stage) {
  Load load;
  load.micro_batch = 5;
  load.accumulation = 4;
  load.ranks = 8;
  load.wave = 3;
  load.stage = stage;
  load.overlap = load.offload_optimizer = load.offload_params = true;
  load.reduce_share = load.prefetch_share = 0.3;
  return load;
}

TEST(StepTimeModel, AMicroStepIsItsPassesAndItsShareOfTheStep) {
  const Load load = everything_at_once(2);
  const Eigen::VectorXd all = prior_of(StepPhase::total, load, 2e5).mean.array().exp();
  Eigen::Index first = 0;
  const auto time_us = [&](StepPhase phase) {
    const Eigen::Index size = prior_of(phase, load, 2e5).mean.size();
    first += size;
    return std::exp(log_time(phase, load, all.segment(first - size, size)));
  };
  const double forward = time_us(StepPhase::forward), backward = time_us(StepPhase::backward);
  const double step = time_us(StepPhase::step);
  EXPECT_EQ(first, all.size());
  EXPECT_NEAR(std::exp(log_time(StepPhase::total, load, all)), forward + backward + step / load.accumulation, 1e-3);
}

TEST(StepTimeModel, GradientsAreTheSlopesOfTheLogTime) {
  constexpr double kStep = 1e-4;
  for (const StepPhase phase : {StepPhase::forward, StepPhase::backward, StepPhase::step, StepPhase::total}) {
    for (const int stage : {0, 1, 2, 3}) {
      for (const double ranks : {1.0, 8.0}) {
        Load load = everything_at_once(stage);
        load.ranks = ranks;
        const Eigen::VectorXd constants = prior_of(phase, load, 2e5).mean.array().exp();
        const Eigen::RowVectorXd gradient = log_time_gradient(phase, load, constants, log_time(phase, load, constants));
        ASSERT_EQ(gradient.size(), constants.size());
        for (Eigen::Index i = 0; i < constants.size(); ++i) {
          Eigen::VectorXd above = constants, below = constants;
          above[i] *= std::exp(kStep);
          below[i] *= std::exp(-kStep);
          const double slope = (log_time(phase, load, above) - log_time(phase, load, below)) / (2 * kStep);
          EXPECT_NEAR(gradient[i], slope, 1e-4) << "phase " << static_cast<int>(phase) << ", stage " << stage << ", "
                                                << ranks << " ranks, constant " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dsat::tests
