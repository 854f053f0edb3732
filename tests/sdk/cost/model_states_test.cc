// Model states against the ZeRO paper's own numbers, buffers and activations against the published formulas.
#include "dsat/cost/model_states.h"

#include <gtest/gtest.h>

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
ModelSize by_layer(double params) { return {params, params, params / 10}; }

TEST(ModelStatesTest, MatchesTheZeroPapersFigure1) {
  const ModelSize size = all_trained(7.5e9);
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    if (precision == Precision::fp16) {
      EXPECT_NEAR(model_state_bytes(size, setup_at(0, precision, 64)), 120 * kGB, 0.05 * kGB);
    }
    EXPECT_NEAR(model_state_bytes(size, setup_at(1, precision, 64)), 31.4 * kGB, 0.05 * kGB);
    EXPECT_NEAR(model_state_bytes(size, setup_at(2, precision, 64)), 16.6 * kGB, 0.05 * kGB);
    EXPECT_NEAR(model_state_bytes(size, setup_at(3, precision, 64)), 1.9 * kGB, 0.05 * kGB);
  }
}

TEST(ModelStatesTest, OneRankDividesNothing) {
  for (int stage = 0; stage <= 3; ++stage) {
    EXPECT_EQ(model_state_bytes(by_layer(1000), setup_at(stage, Precision::fp32, 1)), 16'000) << "stage " << stage;
    EXPECT_EQ(model_state_bytes(all_trained(1000), setup_at(stage, Precision::fp16, 1)), 16'000) << "stage " << stage;
  }
}

// Seen: stage 3 in fp32 on one rank held 20 bytes a parameter besides its bucket.
TEST(ModelStatesTest, DeepSpeedKeepsAMasterCopyInFp32TooFromStage1On) {
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup_at(0, Precision::fp32, 1)), 16'000);
  for (int stage = 1; stage <= 3; ++stage) {
    EXPECT_EQ(model_state_bytes(all_trained(1000), setup_at(stage, Precision::fp32, 1)), 20'000) << "stage " << stage;
  }
}

TEST(ModelStatesTest, OptimizersDifferByTheirStates) {
  cost::Setup setup = setup_at(0, Precision::fp32, 1);
  setup.optimizer = Optimizer::sgd;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 8'000);
  setup.optimizer = Optimizer::sgd_momentum;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 12'000);
  setup.precision = setup.accumulation_dtype = Precision::bf16;
  EXPECT_EQ(model_state_bytes(by_layer(1000), setup), 2'000 + 2'000 + 4'000 + 4'000) << "a master copy in fp32";
}

// DeepSpeed 0.14.5, runtime/bf16_optimizer.py: a flat fp32 gradient of all parameters, the states divided without ZeRO.
TEST(ModelStatesTest, DeepSpeedKeptFlatFp32GradientsInBf16WithoutZero) {
  cost::Setup setup = setup_at(0, Precision::bf16, 4);
  ModelSize older{1000, 500, 0};
  older.deepspeed = engine_of_deepspeed("0.17.5");
  EXPECT_EQ(model_state_bytes(older, setup), 1000 * 2 + 500 * (4 + 2 + 12 / 4));
  EXPECT_EQ(forward_bytes(older, setup), 1000 * 2 + 500 * (4 + 4 / 4)) << "before backward and step";
  // From 0.17.6 on nothing is divided, unless gradients are asked for in fp32.
  EXPECT_EQ(model_state_bytes({1000, 500, 0}, setup), 1000 * 2 + 500 * (2 + 12));
  EXPECT_EQ(forward_bytes({1000, 500, 0}, setup), 1000 * 2 + 500 * 4);
  cost::Setup wide = setup;
  wide.accumulation_dtype = Precision::fp32;
  EXPECT_EQ(model_state_bytes({1000, 500, 0}, wide), 1000 * 2 + 500 * (4 + 2 + 12 / 4));
  EXPECT_EQ(model_state_bytes({1000, 500, 50}, setup), 1000 * 2 + 500 * (2 + 12)) << "the engine by layers";
  setup.stage = 1;
  EXPECT_GT(buffer_bytes(all_trained(1000), setup), 0);
  setup.accumulation_dtype = Precision::fp32;
  EXPECT_EQ(model_state_bytes({1000, 500, 0}, setup), 1000 * 2 + 500 * (4 + 2 + 12 / 4));
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 0);
  EXPECT_EQ(optional_buffer_bytes(all_trained(1000), setup), 0);
  setup.optimizer_device = Device::host;
  EXPECT_GT(buffer_bytes(all_trained(1000), setup), 0) << "an offloaded optimizer is ZeRO's";
}

TEST(ModelStatesTest, MasterWeightsAndStatesMayBeInBf16) {
  cost::Setup setup = setup_at(2, Precision::bf16, 2);
  setup.half_master_copy = true;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 2'000 + (2'000 + 2'000 + 8'000) / 2);
  setup.half_states = true;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 2'000 + (2'000 + 2'000 + 4'000) / 2);
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

// DeepSpeed 0.14.5, runtime/zero/stage3.py: of four sub-groups a ratio of 0.6 offloads two.
TEST(ModelStatesTest, WholeSubGroupsOfTheOptimizerAreOffloaded) {
  cost::Setup setup = setup_at(3, Precision::fp16, 1);
  setup.optimizer_device = Device::host;
  setup.offload_ratio = 0.6;
  setup.sub_group_elements = 250;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 2'000 + 12'000 * 0.5);
  setup.sub_group_elements = 1e9;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 2'000 + 12'000) << "a single one stays";
}

TEST(ModelStatesTest, ASecondCopyOfTheParametersIsSharedByFewerRanks) {
  cost::Setup setup = setup_at(3, Precision::fp16, 8);
  setup.hierarchical_partition = 2;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 16'000 / 8 + 2'000 / 2);
}

TEST(ModelStatesTest, TensorAndPipelineParallelismDivideTheModelOnce) {
  cost::Setup setup = setup_at(1, Precision::fp16, 2);
  setup.tensor_parallel_size = 2;
  setup.pipeline_stages = 5;
  EXPECT_EQ(model_state_bytes(all_trained(1000), setup), 100 * (2 + 2 + 12 / 2));
}

TEST(BufferTest, DeepSpeedsBucketIsWholeWhateverTheModelsSize) {
  for (const int stage : {1, 2}) {
    cost::Setup setup = setup_at(stage, Precision::fp16, 2);
    setup.reduce_bucket_elements = 5e9;
    EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 1e10);
    setup.overlap_comm = true;
    EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 2e10);
    setup.accumulation_dtype = Precision::fp32;
    EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 2e10) << "the bucket is of the model's type";
  }
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup_at(0, Precision::fp16, 2)), 0);
}

TEST(BufferTest, WithoutContiguousGradientsNoMoreIsCollectedThanThereIs) {
  cost::Setup setup = setup_at(2, Precision::fp16, 2);
  setup.contiguous_gradients = false;
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 2'000);
  setup.reduce_bucket_elements = 300;
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 600);
  setup.stage = 3;
  const double bucket = 300 * 2, gathered = 1000 * 2;
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), bucket + gathered);
  setup.reduce_bucket_elements = 5e9;
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 1000 * 2 + gathered) << "stage 3 has no bucket then either";
}

TEST(BufferTest, Stage3HasOneBucketAndKeepsGatheredWhatIsUsedAgainSoon) {
  cost::Setup setup = setup_at(3, Precision::fp16, 2);
  setup.reduce_bucket_elements = 100;
  for (const bool overlap : {false, true}) {
    setup.overlap_comm = overlap;
    EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 100 * 2 + 1000 * 2) << "all of a small model";
  }
  setup.max_reuse_distance_elements = 400;
  setup.prefetch_bucket_elements = 50;
  EXPECT_EQ(buffer_bytes(all_trained(1000), setup), 100 * 2 + 250 * 2);
}

TEST(BufferTest, AnEngineThatGoesByLayersHasABucketOfItsOwn) {
  cost::Setup setup = setup_at(2, Precision::fp16, 2);
  setup.reduce_bucket_elements = 10;
  EXPECT_EQ(buffer_bytes({1000, 1000, 200}, setup), 200 * 2) << "at least the largest layer";
  setup.overlap_comm = true;
  setup.reduce_bucket_elements = 5e8;
  EXPECT_EQ(buffer_bytes({1000, 1000, 200}, setup), 4'000) << "at most the model";
  EXPECT_EQ(buffer_bytes({1000, 1000, 200}, setup_at(1, Precision::fp16, 2)), 0);
  setup = setup_at(3, Precision::fp16, 2);
  setup.reduce_bucket_elements = 100;
  setup.prefetch_bucket_elements = setup.max_reuse_distance_elements = 0;
  EXPECT_EQ(buffer_bytes({1000, 1000, 200}, setup), 200 * 2 + 200 * 2);
}

// dsat-trial's own peaks, of a GPT with 6 layers and 316,928 parameters on two ranks in fp32, above the peak of the
// same run without any of these keys.
TEST(BufferTest, AnEngineThatGoesByLayersKeepsGatheredWhatItsKeysAskFor) {
  const ModelSize size{316'928, 316'928, 49'984};
  const auto bytes = [&](const char* keys) {
    Json config{{"zero_optimization", Json::parse(keys)}};
    config["zero_optimization"].update({{"stage", 3}, {"reduce_bucket_size", 10}});
    return buffer_bytes(size, setup_from_config(config, 2, size.engine()));
  };
  struct Measured {
    const char* keys;
    double above_bytes;
  };
  for (const Measured& measured :
       {Measured{R"({"stage3_prefetch_bucket_size": 1})", 199'936},
        Measured{R"({"stage3_prefetch_bucket_size": 49984})", 199'936},
        Measured{R"({"stage3_prefetch_bucket_size": 49985})", 399'872},
        Measured{R"({"stage3_prefetch_bucket_size": 149952})", 599'808},
        Measured{R"({"stage3_prefetch_bucket_size": 10000000})", 1'000'000},
        Measured{R"({"stage3_max_reuse_distance": 0})", 320},
        Measured{R"({"stage3_max_reuse_distance": 99968})", 200'256},
        Measured{R"({"stage3_max_reuse_distance": 299904})", 600'128},
        Measured{R"({"stage3_max_reuse_distance": 199936, "stage3_prefetch_bucket_size": 49984})", 600'128},
        Measured{R"({"stage3_max_reuse_distance": 100000000, "stage3_prefetch_bucket_size": 10000000})", 1'000'000},
        Measured{R"({"stage3_max_live_parameters": 49984})", 0},
        Measured{R"({"stage3_max_live_parameters": 10000000})", 1'000'000},
        Measured{R"({"stage3_max_live_parameters": 99968, "stage3_prefetch_bucket_size": 10000000})", 199'936}}) {
    const double above = bytes(measured.keys) - bytes("{}");
    // Embedding and head are smaller than a layer: of everything, a third of one is not there at the peak.
    EXPECT_NEAR(above, measured.above_bytes, 0.35 * 49'984 * 4) << measured.keys;
    EXPECT_GE(above, measured.above_bytes - 320) << measured.keys;
  }
}

// What is frozen or small enough is whole on every rank: nothing of it is gathered.
TEST(BufferTest, AnEngineThatGoesByLayersGathersNoMoreThanItDivides) {
  cost::Setup setup = setup_at(3, Precision::fp16, 2);
  setup.reduce_bucket_elements = 10;
  setup.prefetch_bucket_elements = setup.max_live_elements = 1e9;
  setup.persistence_threshold_elements = 0;
  EXPECT_EQ(buffer_bytes({1000, 100, 20}, setup), 20 * 2 + 100 * 2) << "a bucket, and all that is trained";
  setup.persistence_threshold_elements = setup.max_persistent_elements = 1e9;
  EXPECT_EQ(buffer_bytes({1000, 100, 20}, setup), 20 * 2) << "all of it persists";
}

// The same model. Between steps it holds 16 P / N bytes, and whole what persists.
TEST(ModelStatesTest, AnEngineThatGoesByLayersKeepsSmallParametersWhole) {
  ModelSize size{316'928, 316'928, 49'984};
  size.small_params = {3'648, 32'832, 316'928, 316'928, 316'928};
  const auto above = [&](double threshold) {
    cost::Setup setup = setup_at(3, Precision::fp32, 2);
    setup.persistence_threshold_elements = threshold;
    return model_state_bytes(size, setup) - 8 * size.num_params;
  };
  EXPECT_EQ(above(0), 0);
  EXPECT_EQ(above(200), 4 * 3'648) << "the next larger count";
  EXPECT_EQ(above(1e4), 4 * 32'832);
  EXPECT_EQ(above(1e5), 4 * 316'928);
  size.small_params = {};
  EXPECT_EQ(above(1e4), 0) << "not known";
  EXPECT_EQ(above(5e4), 4 * 316'928) << "no parameter is larger than a layer";
}

// DeepSpeed divides them.
TEST(ModelStatesTest, AnEngineThatGoesByLayersHasFrozenParametersWholeOnEveryRank) {
  cost::Setup setup = setup_at(3, Precision::fp16, 2);
  EXPECT_EQ(model_state_bytes({1000, 100, 20}, setup), 900 * 2 + 100 * 16 / 2);
  EXPECT_EQ(model_state_bytes({1000, 100, 0}, setup), 1000 * 2 / 2 + 100 * 14 / 2);
  setup.parameter_device = Device::host;
  EXPECT_EQ(model_state_bytes({1000, 100, 20}, setup), 900 * 2 + 100 * 14 / 2);
}

TEST(BufferTest, OptionalIsACopyWhileReducingAndTheAllgatherBucketOfOlderDeepSpeeds) {
  cost::Setup setup = setup_at(1, Precision::fp16, 2);
  setup.reduce_bucket_elements = 100;
  setup.allgather_bucket_elements = 30;
  EXPECT_EQ(optional_buffer_bytes(all_trained(1000), setup), 100 * 2);
  ModelSize older = all_trained(1000);
  older.deepspeed = engine_of_deepspeed("0.12.3");
  EXPECT_EQ(optional_buffer_bytes(older, setup), 100 * 2 + 30 * 2);
  EXPECT_EQ(optional_buffer_bytes({1000, 1000, 20}, setup), 100 * 2) << "the bucket itself, by layers";
  setup.stage = 3;
  EXPECT_EQ(optional_buffer_bytes(older, setup), 100 * 2);
  setup.stage = 0;
  EXPECT_EQ(optional_buffer_bytes(older, setup), 0);
  setup.stage = 1;
  setup.data_parallel_size = 1;
  EXPECT_EQ(optional_buffer_bytes(older, setup), 0) << "nothing to exchange";
}

// One forward before any step: parameters and their master copy; stage 3 has made its flat gradients and its bucket.
TEST(BufferTest, AForwardHoldsNeitherAdamsStatesNorABucketBelowStage3) {
  cost::Setup setup = setup_at(2, Precision::fp16, 4);
  EXPECT_EQ(forward_bytes(all_trained(1000), setup), 2'000 + 1'000);
  setup.optimizer_device = Device::host;
  EXPECT_EQ(forward_bytes(all_trained(1000), setup), 2'000);
  setup = setup_at(3, Precision::fp16, 4);
  setup.reduce_bucket_elements = 100;
  setup.max_reuse_distance_elements = setup.prefetch_bucket_elements = 0;
  EXPECT_EQ(forward_bytes(all_trained(1000), setup), (2'000 + 4'000 + 2'000) / 4 + 200);
  EXPECT_EQ(forward_bytes(by_layer(1000), setup), model_state_bytes(by_layer(1000), setup) + 2 * 200);
}

TEST(EngineTest, VersionsAreReadNumberByNumber) {
  for (const char* older : {"0.9.5", "0.10.3", "0.12.3", "0.12.3+git1"}) {
    EXPECT_EQ(engine_of_deepspeed(older), Engine::deepspeed_before_0_12_4) << older;
  }
  for (const char* older : {"0.12.4", "0.12.10", "0.14.5", "0.17.5"}) {
    EXPECT_EQ(engine_of_deepspeed(older), Engine::deepspeed_before_0_17_6) << older;
  }
  for (const char* newer : {"0.17.6", "0.19.6+unknown", "1.0.0", "", "0.9", "git", "0..1"}) {
    EXPECT_EQ(engine_of_deepspeed(newer), Engine::deepspeed) << newer;
  }
}

TEST(TransformerActivationTest, FollowsThePublishedFormula) {
  TransformerShape shape{2, 64, 4, 32, false, Checkpointing::none};
  const double tokens = 32 * 64;
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::fp16), 2 * (34 * tokens + 5 * 4 * 32 * 32));
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::fp32), 4 * (34 * tokens + 5 * 4 * 32 * 32));
  shape.checkpointing = Checkpointing::selective;
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::bf16), 2 * 34 * tokens);
  shape.checkpointing = Checkpointing::full;
  const double one_layer = 34 * tokens + 5 * 4 * 32 * 32;
  EXPECT_EQ(transformer_activation_bytes_per_sample(shape, Precision::bf16), 2 * 2 * tokens + one_layer);
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
