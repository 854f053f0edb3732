// Model states against the ZeRO paper's own numbers, buffers and activations against the published formulas.
#include "dsat/cost/model_states.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace dsat::cost {
namespace {

constexpr double kGB = 1e9;

Setup setup_at(int stage, Precision precision, int64_t ranks) {
  cost::Setup setup;
  setup.stage = stage;
  setup.precision = setup.accumulation_dtype = precision;
  setup.data_parallel_size = ranks;
  return setup;
}

ModelSize all_trained(double params) { return {params, params, 0}; }

TEST(ModelStatesTest, MatchesTheZeroPapersFigure1) {
  const ModelSize size = all_trained(7.5e9);
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    EXPECT_NEAR(model_state_bytes(size, setup_at(0, precision, 64)), 120 * kGB, 0.05 * kGB);
    EXPECT_NEAR(model_state_bytes(size, setup_at(1, precision, 64)), 31.4 * kGB, 0.05 * kGB);
    EXPECT_NEAR(model_state_bytes(size, setup_at(2, precision, 64)), 16.6 * kGB, 0.05 * kGB);
    EXPECT_NEAR(model_state_bytes(size, setup_at(3, precision, 64)), 1.9 * kGB, 0.05 * kGB);
  }
}

TEST(ModelStatesTest, OneRankDividesNothing) {
  for (int stage = 0; stage <= 3; ++stage) {
    EXPECT_EQ(model_state_bytes(all_trained(1000), setup_at(stage, Precision::fp32, 1)), 16'000) << "stage " << stage;
    EXPECT_EQ(model_state_bytes(all_trained(1000), setup_at(stage, Precision::fp16, 1)), 16'000) << "stage " << stage;
  }
}

TEST(ModelStatesTest, OptimizersDifferByTheirStates) {
  cost::Setup setup = setup_at(0, Precision::fp32, 1);
  setup.optimizer = Optimizer::sgd;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 8'000);
  setup.optimizer = Optimizer::sgd_momentum;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 12'000);
  setup.precision = setup.accumulation_dtype = Precision::bf16;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 2'000 + 2'000 + 4'000 + 4'000) << "a master copy in fp32";
}

TEST(ModelStatesTest, FrozenParametersCostNoGradientAndNoOptimizerState) {
  const ModelSize size{1000, 100, 0};
  EXPECT_EQ(model_state_bytes(size, setup_at(0, Precision::fp16, 1)), 2'000 + 100 * 14);
}

TEST(ModelStatesTest, GradientsFollowTheAccumulationDtype) {
  cost::Setup setup = setup_at(2, Precision::bf16, 4);
  setup.accumulation_dtype = Precision::fp32;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 2'000 + (4'000 + 12'000) / 4);
}

TEST(ModelStatesTest, OffloadedStatesLeaveTheDevice) {
  cost::Setup setup = setup_at(2, Precision::fp16, 4);
  setup.optimizer_device = Device::host;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 2'000);
  setup.stage = 3;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 500);
  setup.parameter_device = Device::host;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 0);
}

TEST(ModelStatesTest, TensorAndPipelineParallelismDivideTheModelOnce) {
  cost::Setup setup = setup_at(1, Precision::fp16, 2);
  setup.tensor_parallel_size = 2;
  setup.pipeline_stages = 5;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 100 * (2 + 2 + 12 / 2));
}

TEST(BufferTest, ABucketIsNoLargerThanTheModelAndDoublesWithOverlap) {
  cost::Setup setup = setup_at(2, Precision::fp16, 2);
  setup.reduce_bucket_elements = 300;
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 600);
  setup.overlap_comm = true;
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 1'200);
  setup.reduce_bucket_elements = 5e8;
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 4'000);
}

TEST(BufferTest, GradientsThatStayWhereTheyAreNeedNoBucket) {
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup_at(0, Precision::fp16, 2)), 0);
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup_at(1, Precision::fp16, 2)), 0);
}

TEST(BufferTest, ABucketHoldsAtLeastTheLargestLayer) {
  cost::Setup setup = setup_at(2, Precision::fp16, 2);
  setup.reduce_bucket_elements = 10;
  EXPECT_EQ(buffer_bytes({1000, 1000, 200}, setup), 200 * 2);
}

TEST(BufferTest, OptionalBuffersAreTheReduceBucketAtStage1AndTheAllgatherBucket) {
  cost::Setup setup = setup_at(1, Precision::fp16, 2);
  setup.reduce_bucket_elements = 100;
  setup.allgather_bucket_elements = 30;
  EXPECT_EQ(optional_buffer_bytes(all_trained(1000), setup), 100 * 2 + 30 * 2);
  setup.stage = 2;
  EXPECT_EQ(optional_buffer_bytes(all_trained(1000), setup), 30 * 2);
  for (const int stage : {0, 3}) {
    setup.stage = stage;
    EXPECT_EQ(optional_buffer_bytes(all_trained(1000), setup), 0);
  }
  setup.stage = 1;
  setup.data_parallel_size = 1;
  EXPECT_EQ(optional_buffer_bytes(all_trained(1000), setup), 0) << "nothing to exchange";
}

TEST(BufferTest, Stage3GathersTheLargestLayerOrFillsThePrefetchBucket) {
  cost::Setup setup = setup_at(3, Precision::fp16, 2);
  setup.reduce_bucket_elements = 100;
  setup.prefetch_bucket_elements = 50;
  EXPECT_EQ(buffer_bytes({1000, 1000, 200}, setup), 200 * 2 + 200 * 2);
  EXPECT_EQ(buffer_bytes({1000, 1000, 0}, setup), 100 * 2 + 50 * 2) << "the layers are unknown";
  setup.prefetch_bucket_elements = 5e7;
  EXPECT_EQ(buffer_bytes({1000, 1000, 0}, setup), 100 * 2 + 1000 * 2) << "no more than the model";
}

TEST(TransformerActivationTest, FollowsThePublishedFormula) {
  TransformerShape shape{2, 64, 4, 32, false, Checkpointing::none};
  const double tokens = 32 * 64;
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::fp16), 2 * (34 * tokens + 5 * 4 * 32 * 32));
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::fp32), 4 * (34 * tokens + 5 * 4 * 32 * 32));
  shape.checkpointing = Checkpointing::selective;
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::bf16), 2 * 34 * tokens);
  shape.checkpointing = Checkpointing::full;
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::bf16), 2 * 2 * tokens);
  shape.checkpointing = Checkpointing::none;
  shape.flash_attention = true;
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::bf16), 2 * 34 * tokens);
}

TEST(ModelStatesTest, ImpossibleNumbersAreRefused) {
  const cost::Setup setup{};
  EXPECT_THROW(model_state_bytes(all_trained(std::nan("")), setup), Error);
  EXPECT_THROW(model_state_bytes(all_trained(std::numeric_limits<double>::infinity()), setup), Error);
  EXPECT_THROW(model_state_bytes(all_trained(-1), setup), Error);
  EXPECT_THROW(model_state_bytes({10, 11, 0}, setup), Error) << "more trained than there are";
  EXPECT_THROW(model_state_bytes(all_trained(10), setup_at(4, Precision::fp16, 1)), Error);
  EXPECT_THROW(model_state_bytes(all_trained(10), setup_at(1, Precision::fp16, 0)), Error);
  EXPECT_THROW(buffer_bytes({10, 10, -5}, setup), Error);
  EXPECT_THROW(transformer_activation_bytes_per_sample({0, 1, 1, 1}, Precision::fp16), Error);
}

}  // namespace
}  // namespace dsat::cost
