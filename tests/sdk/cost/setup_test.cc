// What of a configuration decides memory, and which values are refused.
#include "dsat/cost/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dsat::cost {
namespace {

Setup read(const char* text, int64_t data_parallel_size = 2) {
  return setup_from_config(Json::parse(text), data_parallel_size);
}

std::string refusal(const char* text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SetupTest, AnEmptyConfigurationTakesDeepSpeedsDefaults) {
  const cost::Setup setup = read("{}");
  EXPECT_EQ(setup.stage, 0);
  EXPECT_EQ(setup.precision, Precision::fp32);
  EXPECT_EQ(setup.optimizer, Optimizer::adam);
  EXPECT_EQ(setup.optimizer_device, Device::accelerator);
  EXPECT_EQ(setup.reduce_bucket_elements, 5e8);
  EXPECT_EQ(setup.prefetch_bucket_elements, 5e7);
  EXPECT_EQ(setup.data_parallel_size, 2);
  EXPECT_EQ(setup.tensor_parallel_size, 1);
  EXPECT_EQ(setup.pipeline_stages, 1);
  EXPECT_EQ(setup.micro_batch, 1);
  EXPECT_FALSE(setup.activation_checkpointing);
}

// dsat-trial gathers ahead, keeps and persists only what a key asks for.
TEST(SetupTest, AnEngineThatGoesByLayersHasDefaultsOfItsOwn) {
  const auto by_layer = [](const char* zero) {
    return setup_from_config({{"zero_optimization", Json::parse(zero)}}, 2, Engine::by_layer);
  };
  const cost::Setup setup = by_layer(R"({"stage": 3})");
  EXPECT_EQ(setup.prefetch_bucket_elements, 0);
  EXPECT_EQ(setup.reduce_bucket_elements, 0) << "one layer";
  EXPECT_EQ(by_layer(R"({"stage": 1})").reduce_bucket_elements, 5e8);
  EXPECT_EQ(setup.max_reuse_distance_elements, 0);
  EXPECT_EQ(setup.persistence_threshold_elements, 0);
  EXPECT_EQ(by_layer(R"({"stage": 3, "stage3_param_persistence_threshold": 10})").persistence_threshold_elements, 10);
  const cost::Setup bounded = by_layer(R"({"stage": 3, "stage3_max_live_parameters": 50})");
  EXPECT_EQ(bounded.max_live_elements, 50);
  EXPECT_GT(bounded.max_reuse_distance_elements, 1e300) << "what is used again stays as long as there is room";
}

TEST(SetupTest, NoNumberOfCheckpointsIsNoRecomputation) {
  EXPECT_TRUE(read(R"({"activation_checkpointing": {"number_checkpoints": 4}})").activation_checkpointing);
  for (const char* none : {"false", "0", "null"}) {
    const std::string config = std::string(R"({"activation_checkpointing": {"number_checkpoints": )") + none + "}}";
    EXPECT_FALSE(read(config.c_str()).activation_checkpointing) << none;
  }
}

TEST(SetupTest, ReadsEveryKeyThatDecidesMemory) {
  const cost::Setup setup = read(R"({
    "train_micro_batch_size_per_gpu": 12,
    "bf16": {"enabled": true},
    "data_types": {"grad_accum_dtype": "fp32"},
    "optimizer": {"type": "SGD", "params": {"momentum": 0.9}},
    "pipeline": {"stages": 2},
    "tensor_parallel": {"autotp_size": 4},
    "activation_checkpointing": {"partition_activations": true},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e7, "allgather_bucket_size": 1000,
                          "stage3_prefetch_bucket_size": 2000, "overlap_comm": true,
                          "offload_optimizer": {"device": "nvme"}}})");
  EXPECT_EQ(setup.stage, 2);
  EXPECT_EQ(setup.precision, Precision::bf16);
  EXPECT_EQ(setup.accumulation_dtype, Precision::fp32);
  EXPECT_EQ(setup.optimizer, Optimizer::sgd_momentum);
  EXPECT_EQ(setup.optimizer_device, Device::host);
  EXPECT_EQ(setup.parameter_device, Device::accelerator);
  EXPECT_EQ(setup.pipeline_stages, 2);
  EXPECT_EQ(setup.tensor_parallel_size, 4);
  EXPECT_TRUE(setup.activation_checkpointing);
  EXPECT_EQ(setup.reduce_bucket_elements, 5e7);
  EXPECT_EQ(setup.allgather_bucket_elements, 1000);
  EXPECT_EQ(setup.prefetch_bucket_elements, 2000);
  EXPECT_TRUE(setup.overlap_comm);
  EXPECT_EQ(setup.micro_batch, 12);
}

TEST(SetupTest, TheOlderSectionOfBf16CountsOnlyAlone) {
  EXPECT_EQ(read(R"({"bfloat16": {"enabled": true}})").precision, Precision::bf16);
  EXPECT_EQ(read(R"({"bf16": {"enabled": false}, "bfloat16": {"enabled": true}})").precision, Precision::fp32);
}

TEST(SetupTest, GradientsAreAccumulatedInThePrecisionByDefault) {
  EXPECT_EQ(read(R"({"fp16": {"enabled": true}})").accumulation_dtype, Precision::fp16);
  EXPECT_EQ(read(R"({"fp16": {"enabled": true}, "data_types": {"grad_accum_dtype": null}})").accumulation_dtype,
            Precision::fp16);
  EXPECT_EQ(read(R"({"fp16": {"enabled": true}, "data_types": {"grad_accum_dtype": "float"}})").accumulation_dtype,
            Precision::fp32);
}

TEST(SetupTest, AnOffloadedOptimizerKeepsGradientsContiguousBelowStage3) {
  const Json config = Json::parse(R"({"zero_optimization": {"stage": 1, "contiguous_gradients": false}})");
  EXPECT_FALSE(read(config.dump().c_str()).contiguous_gradients);
  Json offloaded = config;
  offloaded["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  EXPECT_TRUE(read(offloaded.dump().c_str()).contiguous_gradients);
  offloaded["zero_optimization"]["stage"] = 3;
  EXPECT_FALSE(read(offloaded.dump().c_str()).contiguous_gradients);
}

TEST(SetupTest, CommunicationOverlapsByDefaultAtStage3Only) {
  EXPECT_FALSE(read(R"({"zero_optimization": {"stage": 2}})").overlap_comm);
  EXPECT_TRUE(read(R"({"zero_optimization": {"stage": 3}})").overlap_comm);
  EXPECT_FALSE(read(R"({"zero_optimization": {"stage": 3, "overlap_comm": false}})").overlap_comm);
}

TEST(SetupTest, OptimizersCountByTheStatesTheyKeep) {
  const auto optimizer = [](const std::string& type) {
    return setup_from_config(Json{{"optimizer", {{"type", type}}}}, 1).optimizer;
  };
  EXPECT_EQ(optimizer("Adam"), Optimizer::adam);
  EXPECT_EQ(optimizer("AdamW"), Optimizer::adam);
  EXPECT_EQ(optimizer("OneBitAdam"), Optimizer::adam);
  EXPECT_EQ(optimizer("SGD"), Optimizer::sgd);
  EXPECT_EQ(optimizer("Lion"), Optimizer::sgd_momentum);
  EXPECT_EQ(optimizer("SomethingNobodyKnows"), Optimizer::adam) << "the hungriest, so as not to promise too much";
}

TEST(SetupTest, TheOlderOffloadFlagsCount) {
  for (const char* flag : {"cpu_offload_param", "cpu_offload_params"}) {
    const Json config{{"zero_optimization", {{"stage", 3}, {"cpu_offload", true}, {flag, true}}}};
    const cost::Setup setup = setup_from_config(config, 1);
    EXPECT_EQ(setup.optimizer_device, Device::host) << flag;
    EXPECT_EQ(setup.parameter_device, Device::host) << flag;
  }
}

TEST(SetupTest, RanksThatShareASequenceShareTheStates) {
  const Json config{{"sequence_parallel_size", 4}, {"train_batch_size", 8}};
  const cost::Setup setup = setup_from_config(config, 2);
  EXPECT_EQ(setup.data_parallel_size, 8);
  EXPECT_EQ(setup.micro_batch, 4) << "a batch is divided by data-parallel ranks only";
}

TEST(SetupTest, AutoIsAsGoodAsAbsent) {
  const cost::Setup setup = read(R"({
    "train_micro_batch_size_per_gpu": "auto", "fp16": {"enabled": "auto"}, "optimizer": {"type": "auto"},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto", "overlap_comm": "auto"}})");
  EXPECT_EQ(setup.micro_batch, 1);
  EXPECT_EQ(setup.precision, Precision::fp32);
  EXPECT_FALSE(setup.overlap_comm);
}

TEST(SetupTest, ABucketThatHuggingFaceSizesIsSmall) {
  const cost::Setup setup = read(R"({"zero_optimization": {
    "stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto"}})");
  EXPECT_EQ(setup.reduce_bucket_elements, 0);
  EXPECT_EQ(setup.prefetch_bucket_elements, 0);
  EXPECT_EQ(setup.allgather_bucket_elements, 5e8);
}

TEST(SetupTest, ReadsThePartitionsOfStage3) {
  Json config = Json::parse(R"({"zero_optimization": {
    "stage": 3, "mics_shard_size": 4, "zero_hpz_partition_size": 2, "sub_group_size": 1000,
    "offload_optimizer": {"device": "cpu", "ratio": 0.5}}})");
  const cost::Setup third = setup_from_config(config, 8);
  EXPECT_EQ(third.data_parallel_size, 4) << "MiCS shares the states within groups";
  EXPECT_EQ(third.hierarchical_partition, 2);
  EXPECT_EQ(third.offload_ratio, 0.5);
  EXPECT_EQ(third.sub_group_elements, 1000);
  config["zero_optimization"]["stage"] = 2;
  EXPECT_EQ(setup_from_config(config, 8).data_parallel_size, 8);
}

TEST(SetupTest, RanksThatHoldOtherPartsOfALayerDoNotShareTheStates) {
  const auto setup = [](const char* text) { return read(text, 8); };
  EXPECT_EQ(setup(R"({"tensor_parallel": {"autotp_size": 4}})").data_parallel_size, 2);
  EXPECT_EQ(setup(R"({"tensor_parallel": {"autotp_size": 4}, "train_batch_size": 16})").micro_batch, 2);
  EXPECT_EQ(setup(R"({"mp_size": 4})").data_parallel_size, 8) << "the batch is divided by it already";
}

TEST(SetupTest, ReadsMasterWeightsInBf16) {
  const cost::Setup half = read(
      R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}})");
  EXPECT_TRUE(half.half_master_copy);
  EXPECT_TRUE(half.half_states);
  EXPECT_FALSE(read(R"({"bf16": {"enabled": false, "bf16_master_weights_and_grads": true}})").half_master_copy);
}

TEST(SetupTest, WrongTypesAreRefusedByKey) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal(R"([1])"), HasSubstr("JSON object"));
  EXPECT_THAT(refusal(R"({"fp16": {"enabled": "yes"}})"), HasSubstr("fp16.enabled"));
  EXPECT_THAT(refusal(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": true}})"),
              HasSubstr("zero_optimization.reduce_bucket_size"));
  EXPECT_THAT(refusal(R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": -1}})"), HasSubstr("not negative"));
  EXPECT_THAT(refusal(R"({"zero_optimization": {"stage": 7}})"), HasSubstr("stage"));
  EXPECT_THAT(refusal(R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "moon"}}})"),
              HasSubstr("nvme or none"));
  EXPECT_THAT(refusal(R"({"optimizer": {"type": 3}})"), HasSubstr("optimizer.type"));
  EXPECT_THAT(refusal(R"({"pipeline": {"stages": 1.5}})"), HasSubstr("pipeline.stages"));
  EXPECT_THAT(refusal(R"({"data_types": {"grad_accum_dtype": "int8"}})"), HasSubstr("fp16 or bf16"));
  EXPECT_THAT(refusal(R"({"train_micro_batch_size_per_gpu": -4})"), HasSubstr("train_micro_batch_size_per_gpu"));
  EXPECT_THROW(setup_from_config(Json::object(), 0), Error);
}

}  // namespace
}  // namespace dsat::cost
