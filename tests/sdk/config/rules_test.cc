// Combinations that DeepSpeed refuses, and the sentence that names each.
#include "dsat/config/rules.h"

#include <fmt/format.h>

#include "dsat/config/json.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

Json config(const std::string& text) { return parse(text, "test"); }
Json zero(const std::string& members) { return config("{\"zero_optimization\": {" + members + "}}"); }

// The broken rule, or "" for a valid configuration.
std::string rule(const Json& json, const RuleOptions& options = {}) { return broken_rule(json, options).value_or(""); }

TEST(ZeroStage, ReadsTheStage) {
  EXPECT_EQ(zero_stage(config("{}")), 0);
  EXPECT_EQ(zero_stage(zero("")), 0);
  EXPECT_EQ(zero_stage(zero(R"("stage": "auto")")), 0);
  EXPECT_EQ(zero_stage(zero(R"("stage": 3)")), 3);
  EXPECT_EQ(zero_stage(zero(R"("stage": 2.0)")), 2);
  EXPECT_EQ(zero_stage(config(R"({"zero_optimization": null})")), 0);
  EXPECT_EQ(zero_stage(config(R"({"zero_optimization": true})")), 1) << "the oldest form";
}

TEST(ZeroStage, RefusesAnythingElse) {
  for (const char* value : {"4", "-1", "1.5", "\"two\"", "true", "[1]", "{}"}) {
    EXPECT_THAT(error_of([&] { zero_stage(zero(std::string("\"stage\": ") + value)); }),
                AllOf(HasSubstr("zero_optimization.stage is "), HasSubstr("2 or 3")))
        << value;
  }
  EXPECT_THAT(error_of([] { zero_stage(config(R"({"zero_optimization": 3})")); }),
              AllOf(HasSubstr("zero_optimization is 3"), HasSubstr("a section")));
}

TEST(BrokenRule, AnEmptyConfigurationIsValid) { EXPECT_EQ(rule(config("{}")), ""); }

TEST(BrokenRule, AnOlderSwitchBesideWhatReplacedIt) {
  EXPECT_THAT(
      rule(zero(R"("stage": 2, "cpu_offload": false, "offload_optimizer": {"device": "cpu"})")),
      AllOf(HasSubstr("zero_optimization.cpu_offload and zero_optimization.offload_optimizer"), HasSubstr("keep one")));
  EXPECT_EQ(rule(zero(R"("stage": 2, "cpu_offload": "auto", "offload_optimizer": {"device": "cpu"})")), "");
  EXPECT_EQ(rule(zero(R"("stage": 2, "cpu_offload": true)")), "");
}

TEST(BrokenRule, PipelineOnlyWithZero0Or1) {
  for (int stage = 0; stage <= 3; ++stage) {
    Json json = config(R"({"pipeline": {"stages": 4}})");
    set(json, "zero_optimization.stage", stage);
    EXPECT_EQ(rule(json).empty(), stage <= 1) << stage;
  }
  EXPECT_THAT(rule(config(R"({"pipeline": {"stages": 4}, "zero_optimization": {"stage": 2}})")),
              AllOf(HasSubstr("0 or 1"), HasSubstr("pipeline.stages is 4"), HasSubstr("zero_optimization.stage is 2")));
  EXPECT_EQ(rule(config(R"({"pipeline": {"stages": 1}, "zero_optimization": {"stage": 3}})")), "");
  EXPECT_EQ(rule(config(R"({"pipeline": {"stages": "auto"}, "zero_optimization": {"stage": 3}})")), "");
}

TEST(BrokenRule, ParameterOffloadOnlyWithZero3) {
  EXPECT_EQ(rule(zero(R"("stage": 3, "offload_param": {"device": "cpu"})")), "");
  EXPECT_EQ(rule(zero(R"("stage": 2, "offload_param": {"device": "none"})")), "");
  EXPECT_EQ(rule(zero(R"("stage": 2, "offload_param": {"device": "auto"})")), "");
  EXPECT_EQ(rule(zero(R"("stage": 2, "offload_param": null)")), "");
  EXPECT_THAT(rule(zero(R"("stage": 2, "offload_param": {"device": "nvme"})")),
              AllOf(HasSubstr("ZeRO 3"), HasSubstr("zero_optimization.offload_param.device nvme"),
                    HasSubstr("zero_optimization.stage is 2")));
  EXPECT_THAT(rule(zero(R"("stage": 2, "cpu_offload_param": true)")), HasSubstr("cpu_offload_param true"));
}

TEST(BrokenRule, OptimizerOffloadNeedsZero) {
  for (int stage = 0; stage <= 3; ++stage) {
    Json json = zero(R"("offload_optimizer": {"device": "cpu"})");
    set(json, "zero_optimization.stage", stage);
    EXPECT_EQ(rule(json).empty(), stage >= 1) << stage;
  }
  EXPECT_THAT(rule(zero(R"("stage": 0, "cpu_offload": true)")),
              AllOf(HasSubstr("2 or 3"), HasSubstr("cpu_offload true")));
  EXPECT_EQ(rule(zero(R"("stage": 0, "cpu_offload": false)")), "");
}

TEST(BrokenRule, MicroBatchWithinBounds) {
  RuleOptions bounds;
  bounds.min_micro_batch = 4;
  bounds.max_micro_batch = 16;
  EXPECT_EQ(rule(config(R"({"train_micro_batch_size_per_gpu": 4})"), bounds), "");
  EXPECT_EQ(rule(config(R"({"train_micro_batch_size_per_gpu": 16})"), bounds), "");
  EXPECT_EQ(rule(config(R"({"train_micro_batch_size_per_gpu": "auto"})"), bounds), "");
  EXPECT_THAT(rule(config(R"({"train_micro_batch_size_per_gpu": 17})"), bounds),
              AllOf(HasSubstr("train_micro_batch_size_per_gpu is 17"), HasSubstr("16 (--max-micro-batch)")));
  EXPECT_THAT(rule(config(R"({"train_micro_batch_size_per_gpu": 3})"), bounds), HasSubstr("--min-micro-batch"));
}

TEST(BrokenRule, BucketSizesPositive) {
  EXPECT_EQ(rule(zero(R"("reduce_bucket_size": 5e8, "allgather_bucket_size": "auto")")), "");
  EXPECT_THAT(rule(zero(R"("reduce_bucket_size": 0)")), HasSubstr("zero_optimization.reduce_bucket_size is 0"));
  EXPECT_THAT(rule(zero(R"("allgather_bucket_size": -5e8)")), HasSubstr("allgather_bucket_size is -500000000"));
  EXPECT_EQ(rule(zero(R"("stage3_prefetch_bucket_size": 0)")), "") << "0 switches prefetching off";
  EXPECT_THAT(rule(zero(R"("stage3_prefetch_bucket_size": -1)")), HasSubstr("stage3_prefetch_bucket_size is -1"));
}

TEST(BrokenRule, TheAllGathersBucketIsEvenWithZero1And2) {
  EXPECT_THAT(rule(zero(R"("stage": 2, "allgather_bucket_size": 3)")),
              HasSubstr("zero_optimization.allgather_bucket_size is 3"));
  EXPECT_EQ(rule(zero(R"("stage": 3, "allgather_bucket_size": 3)")), "");
}

TEST(BrokenRule, PartitionsAreOfEqualSize) {
  RuleOptions four;
  four.world_size = 4;
  EXPECT_EQ(rule(zero(R"("stage": 3, "zero_hpz_partition_size": 2)"), four), "");
  EXPECT_EQ(rule(zero(R"("stage": 3, "zero_hpz_partition_size": 8)"), four), "") << "counts as 4";
  EXPECT_EQ(rule(zero(R"("stage": 2, "zero_hpz_partition_size": 3)"), four), "") << "not read there";
  EXPECT_EQ(rule(zero(R"("stage": 3, "zero_hpz_partition_size": 3)")), "") << "the number of devices is not known";
  EXPECT_THAT(rule(zero(R"("stage": 3, "zero_hpz_partition_size": 3)"), four),
              AllOf(HasSubstr("zero_optimization.zero_hpz_partition_size"), HasSubstr("3"), HasSubstr("4")));
  EXPECT_THAT(rule(zero(R"("stage": 3, "mics_shard_size": 8)"), four), HasSubstr("mics_shard_size"));
  Json sized = zero(R"("stage": 3, "zero_hpz_partition_size": 3)");
  set(sized, "autotuning.num_gpus", 6);
  set(sized, "autotuning.num_nodes", 1);
  EXPECT_EQ(rule(sized, four), "") << "the configuration's own devices count";
}

TEST(BrokenRule, APartOfTheOptimizerOnlyWithZero3) {
  EXPECT_EQ(rule(zero(R"("stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3})")), "");
  EXPECT_THAT(rule(zero(R"("stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.3})")),
              AllOf(HasSubstr("ratio is 0.3"), HasSubstr("zero_optimization.stage is 2")));
  EXPECT_EQ(rule(zero(R"("stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 1.0})")), "");
}

TEST(BrokenRule, OnePrecisionAtATime) {
  EXPECT_EQ(rule(config(R"({"fp16": {"enabled": true}, "bf16": {"enabled": false}})")), "");
  EXPECT_EQ(rule(config(R"({"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}})")), "");
  EXPECT_THAT(rule(config(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})")),
              HasSubstr("fp16.enabled and bf16.enabled"));
  EXPECT_THAT(rule(config(R"({"fp16": {"enabled": true}, "bfloat16": {"enabled": true}})")),
              HasSubstr("bfloat16.enabled"));
  EXPECT_EQ(rule(config(R"({"fp16": {"enabled": true}, "bf16": {}, "bfloat16": {"enabled": true}})")), "")
      << "DeepSpeed reads bf16 alone";
}

TEST(BrokenRule, WithoutZeroOnlySomePrecisionsOfGradients) {
  const auto broken = [](const char* section, const char* dtype, int stage, int pipeline = 1) {
    return rule(Json{{section, {{"enabled", true}}},
                     {"data_types", {{"grad_accum_dtype", dtype}}},
                     {"pipeline", {{"stages", pipeline}}},
                     {"zero_optimization", {{"stage", stage}}}});
  };
  EXPECT_EQ(broken("bf16", "fp32", 0), "");
  EXPECT_EQ(broken("fp16", "float16", 0), "");
  EXPECT_THAT(broken("bf16", "fp16", 0),
              AllOf(HasSubstr("bf16 or fp32 with bf16"), HasSubstr("data_types.grad_accum_dtype is fp16"),
                    HasSubstr("zero_optimization.stage is 0")));
  EXPECT_THAT(broken("fp16", "fp32", 0), HasSubstr("fp16 with fp16"));
  EXPECT_EQ(broken("bf16", "bf16", 0, 2), "") << "a pipeline can";
  EXPECT_EQ(broken("bf16", "bf16", 1), "");
  EXPECT_EQ(broken("fp16", "fp32", 2), "");
}

TEST(BrokenRule, ElasticTrainingChoosesTheBatchItself) {
  EXPECT_EQ(rule(config(R"({"elasticity": {"enabled": false, "max_train_batch_size": 8}})")), "");
  EXPECT_THAT(rule(config(R"({"elasticity": {"enabled": true, "ignore_non_elastic_batch_info": true}})")),
              AllOf(HasSubstr("elasticity.enabled is true"), HasSubstr("to false")));
  RuleOptions another;
  another.engine_is_deepspeed = false;
  EXPECT_EQ(rule(config(R"({"elasticity": {"enabled": true}})"), another), "");
}

// The stages at which a configuration is valid.
std::string valid_stages(const char* text) {
  std::string stages;
  for (int stage = 0; stage <= 3; ++stage) {
    if (!forbids_stage(config(text), stage)) stages += std::to_string(stage);
  }
  return stages;
}

TEST(BrokenRule, GradientsAreScaledBeforehandOnlyWithoutReduceScatter) {
  EXPECT_EQ(valid_stages(R"({"prescale_gradients": true})"), "01");
  EXPECT_EQ(valid_stages(R"({"gradient_predivide_factor": 2})"), "01");
  EXPECT_EQ(valid_stages(R"({"gradient_predivide_factor": 1.0, "prescale_gradients": false})"), "0123");
  EXPECT_EQ(valid_stages(R"({"prescale_gradients": true, "zero_optimization": {"reduce_scatter": false}})"), "0123");
  EXPECT_THAT(rule(config(R"({"prescale_gradients": true, "zero_optimization": {"stage": 2}})")),
              AllOf(HasSubstr("zero_optimization.reduce_scatter"), HasSubstr("prescale_gradients is true"),
                    HasSubstr("zero_optimization.stage is 2")));
  EXPECT_EQ(valid_stages(R"({"zero_optimization": {"zero_quantized_gradients": true, "reduce_scatter": false}})"),
            "012");
}

TEST(BrokenRule, ZeroTakesTheOptimizersThatItWasTestedWith) {
  for (const char* tested : {"Adam", "adamw", "Adagrad", "Lion", "MuAdam"}) {
    EXPECT_EQ(valid_stages(fmt::format(R"({{"optimizer": {{"type": "{}"}}}})", tested).c_str()), "0123") << tested;
  }
  for (const char* other : {"SGD", "RMSprop", "Lamb", "OneBitAdam", "ZeroOneAdam", "OneBitLamb"}) {
    EXPECT_EQ(valid_stages(fmt::format(R"({{"optimizer": {{"type": "{}"}}}})", other).c_str()), "0") << other;
  }
  EXPECT_EQ(valid_stages(R"({"optimizer": {"type": "SGD"}, "zero_allow_untested_optimizer": true})"), "0123");
  EXPECT_EQ(valid_stages(R"({"optimizer": {"type": "OneBitAdam"}, "zero_allow_untested_optimizer": true})"), "0");
  EXPECT_THAT(rule(config(R"({"optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 1}})")),
              AllOf(HasSubstr("optimizer.type is SGD"), HasSubstr("zero_allow_untested_optimizer"),
                    HasSubstr("remove 'optimizer'")));
}

TEST(BrokenRule, WhatTheEngineTakesAtSomeStagesOnly) {
  EXPECT_EQ(valid_stages(R"({"amp": {"enabled": true}})"), "0");
  EXPECT_EQ(valid_stages(R"({"amp": {"enabled": false}})"), "0123");
  EXPECT_EQ(valid_stages(R"({"fp16": {"enabled": true, "fp16_master_weights_and_grads": true}})"), "123");
  EXPECT_EQ(valid_stages(R"({"zero_optimization": {"offload_optimizer": {"device": "nvme"}}})"), "12");
  EXPECT_EQ(valid_stages(R"({"zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": "/d"}}})"), "3");
}

TEST(BrokenRule, NamesWrongTypes) {
  const std::pair<const char*, const char*> kWrong[] = {
      {R"({"zero_optimization": {"reduce_bucket_size": "big"}})", "reduce_bucket_size is \"big\";"},
      {R"({"zero_optimization": {"reduce_bucket_size": 1.5}})", "reduce_bucket_size is 1.5"},
      {R"({"zero_optimization": {"cpu_offload": 1}})", "cpu_offload is 1"},
      {R"({"zero_optimization": {"offload_param": {"device": true}}})", "device is true"},
      {R"({"zero_optimization": {"offload_param": {"device": "gpu"}}})", "\"cpu\" or \"nvme\""},
      {R"({"zero_optimization": {"offload_optimizer": true}})", "offload_optimizer is true"},
      {R"({"fp16": true})", "fp16 is true"},
      {R"({"bf16": {"enabled": "yes"}})", "bf16.enabled is \"yes\";"},
      {R"({"pipeline": {"stages": "many"}})", "pipeline.stages is \"many\";"},
      {R"({"train_micro_batch_size_per_gpu": -4})", "train_micro_batch_size_per_gpu is -4"},
  };
  for (const auto& [text, message] : kWrong) {
    const Json json = config(text);
    EXPECT_THAT(error_of([&] { rule(json); }), HasSubstr(message)) << text;
  }
}

TEST(BrokenRule, CutsLongValuesShort) {
  const Json json = zero("\"stage\": \"" + std::string(500, 'x') + "\"");
  EXPECT_LT(error_of([&] { rule(json); }).size(), 150u);
}

TEST(ForbidsStage, AsksAsIfTheStageWereSet) {
  const Json pipeline = config(R"({"pipeline": {"stages": 2}, "zero_optimization": {"stage": 1}})");
  EXPECT_EQ(forbids_stage(pipeline, 1), std::nullopt);
  EXPECT_THAT(forbids_stage(pipeline, 2),
              Optional(AllOf(HasSubstr("pipeline.stages is 2"), HasSubstr("zero_optimization.stage is 2"))));
  const Json offload = zero(R"("stage": 3, "offload_param": {"device": "cpu"})");
  EXPECT_THAT(forbids_stage(offload, 1), Optional(HasSubstr("ZeRO 3")));
  EXPECT_EQ(forbids_stage(offload, 3), std::nullopt);
  EXPECT_EQ(forbids_stage(config(R"({"zero_optimization": true})"), 3), std::nullopt);
}

TEST(ForbidsStage, TheUsersMicroBatchIsOnlyAStartingPoint) {
  RuleOptions bounds;
  bounds.max_micro_batch = 8;
  EXPECT_EQ(forbids_stage(config(R"({"train_micro_batch_size_per_gpu": 64})"), 1, bounds), std::nullopt);
}

RuleOptions with_version(const char* version) {
  RuleOptions options;
  options.engine_version = parse_engine_version(version);
  return options;
}

TEST(BrokenRule, TheGradientsOfBf16WithoutZeroDependOnTheVersion) {
  const auto at = [](const char* dtype, const RuleOptions& options) {
    return rule(
        config(fmt::format(R"({{"bf16": {{"enabled": true}}, "data_types": {{"grad_accum_dtype": "{}"}}}})", dtype)),
        options);
  };
  EXPECT_THAT(at("bf16", with_version("0.17.5")), HasSubstr("must be fp32 with bf16"));
  EXPECT_EQ(at("fp32", with_version("0.17.5")), "");
  EXPECT_EQ(at("bf16", with_version("0.17.6")), "");
  EXPECT_EQ(at("fp32", with_version("0.18.4")), "");
  EXPECT_EQ(at("bf16", with_version("0.18.5")), "");
  EXPECT_THAT(at("fp32", with_version("0.18.5")), HasSubstr("must be bf16 with bf16"));
  EXPECT_EQ(at("bf16", {}), "") << "the first trial shows the version";
  EXPECT_EQ(at("fp32", {}), "");
  EXPECT_THAT(at("fp16", {}), HasSubstr("must be bf16 or fp32"));
}

TEST(BrokenRule, MuonNeedsWholeGradients) {
  const auto muon = [](int stage, const char* more) {
    return config(
        fmt::format(R"({{"optimizer": {{"type": "Muon"}}, "zero_optimization": {{"stage": {}{}}}}})", stage, more));
  };
  EXPECT_THAT(rule(muon(3, "")), HasSubstr("at ZeRO 3 needs zero_optimization.reduce_scatter false"));
  EXPECT_EQ(rule(muon(3, R"(, "reduce_scatter": false)")), "");
  EXPECT_EQ(rule(muon(3, ""), with_version("0.18.8")), "");
  EXPECT_EQ(rule(muon(2, "")), "");
  EXPECT_THAT(rule(muon(2, R"(, "offload_optimizer": {"device": "cpu"})")), HasSubstr("with an offloaded optimizer"));
  EXPECT_EQ(rule(muon(2, R"(, "offload_optimizer": {"device": "none"})")), "");
  RuleOptions older = with_version("0.19.2");
  EXPECT_THAT(rule(muon(1, ""), older), HasSubstr("before 0.19.3 updates Muon's parameters wrongly"));
  EXPECT_EQ(rule(muon(1, R"(, "reduce_scatter": false)"), older), "");
  EXPECT_EQ(rule(muon(2, ""), with_version("0.19.3")), "");
  older.world_size = 1;
  EXPECT_EQ(rule(muon(1, ""), older), "") << "one rank has whole gradients";
}

TEST(BrokenRule, SumsOfGradientsAreNotForEveryFeature) {
  EXPECT_THAT(rule(config(R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3}})")),
              HasSubstr("ZeRO 3"));
  EXPECT_THAT(rule(config(R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 2, "zenflow": {}}})")),
              HasSubstr("ZenFlow"));
  EXPECT_THAT(rule(config(R"({"gradient_allreduce_op": "sum", "compile": {"deepcompile": true}})")),
              HasSubstr("DeepCompile"));
  EXPECT_EQ(rule(config(R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 2}})")), "");
  EXPECT_EQ(
      rule(config(R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3}})"), with_version("0.18.0")),
      "")
      << "an older DeepSpeed ignores the key";
}

TEST(BrokenRule, MasterWeightsIn16BitNeedZero) {
  const Json half = config(R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true}})");
  EXPECT_THAT(rule(half), HasSubstr("bf16.bf16_master_weights_and_grads is true"));
  EXPECT_EQ(forbids_stage(half, 1), std::nullopt);
}

TEST(BrokenRule, OnProcessorsGradientsMustBeContiguous) {
  RuleOptions processors;
  processors.on_processors = true;
  for (const int stage : {1, 2}) {
    const Json json = zero(fmt::format(R"("stage": {}, "contiguous_gradients": false)", stage));
    EXPECT_THAT(rule(json, processors), HasSubstr("reduces no gradient")) << stage;
    EXPECT_EQ(rule(json), "") << stage;
  }
  EXPECT_EQ(rule(zero(R"("stage": 3, "contiguous_gradients": false)"), processors), "");
  EXPECT_EQ(rule(zero(R"("stage": 2, "contiguous_gradients": true)"), processors), "");
}

}  // namespace
}  // namespace dsat::config
