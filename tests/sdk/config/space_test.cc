// The tuning space: default axes, the user's lists, stages, bounds, and its JSON form.
#include "dsat/config/space.h"

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SpaceRequest request(const char* user_config, std::vector<int> stages = {1, 2, 3}) {
  SpaceRequest out;
  out.stages = std::move(stages);
  out.user_config = parse(user_config, "test");
  return out;
}

SpaceResult build(const char* user_config, std::vector<int> stages = {1, 2, 3}) {
  return build_space(request(user_config, std::move(stages)));
}

std::string refusal(const SpaceRequest& request) {
  return error_of([&] { build_space(request); });
}

std::vector<int> stages_of(const SpaceResult& result) {
  std::vector<int> out;
  for (const StageSpace& stage : result.space.stages) out.push_back(stage.stage);
  return out;
}

std::vector<std::string> keys_of(const SpaceResult& result, int stage) {
  std::vector<std::string> out;
  for (const Axis& axis : result.space.stage(stage)->axes) out.push_back(axis.key);
  return out;
}

// The values of an axis as text; "none" where the stage has no such axis.
std::string values_of(const SpaceResult& result, int stage, const std::string& key) {
  for (const Axis& axis : result.space.stage(stage)->axes) {
    if (axis.key == key) return Json(axis.values).dump();
  }
  return "none";
}

constexpr const char* kReduce = "zero_optimization.reduce_bucket_size";
constexpr const char* kAllgather = "zero_optimization.allgather_bucket_size";
constexpr const char* kParamDevice = "zero_optimization.offload_param.device";

TEST(DefaultSpace, IsCumulativeByStage) {
  const SpaceResult result = build("{}", {3, 0, 1, 2, 1});
  EXPECT_THAT(stages_of(result), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(keys_of(result, 0), IsEmpty());
  EXPECT_THAT(keys_of(result, 1), ElementsAre(kReduce));
  EXPECT_THAT(keys_of(result, 2),
              ElementsAre(kReduce, "zero_optimization.overlap_comm", "zero_optimization.reduce_scatter",
                          "zero_optimization.contiguous_gradients"));
  EXPECT_THAT(keys_of(result, 3),
              ElementsAre(kReduce, "zero_optimization.overlap_comm", "zero_optimization.reduce_scatter",
                          "zero_optimization.contiguous_gradients", "zero_optimization.stage3_prefetch_bucket_size",
                          "zero_optimization.stage3_param_persistence_threshold",
                          "zero_optimization.stage3_max_reuse_distance", "zero_optimization.sub_group_size"));
  EXPECT_EQ(values_of(result, 1, kReduce),
            "[1000000,5000000,10000000,50000000,100000000,500000000,1000000000,5000000000]");
  EXPECT_EQ(values_of(result, 3, "zero_optimization.overlap_comm"), "[true,false]");
  EXPECT_THAT(result.notices, IsEmpty());
}

TEST(DefaultSpace, OnProcessorsContiguousGradientsStayAtStages1And2) {
  const auto on_processors = [](const char* config) {
    SpaceRequest wanted = request(config, {1, 2, 3});
    wanted.rules.on_processors = true;
    return build_space(wanted);
  };
  constexpr const char* kContiguous = "zero_optimization.contiguous_gradients";
  const SpaceResult plain = on_processors("{}");
  EXPECT_EQ(values_of(plain, 2, kContiguous), "none");
  EXPECT_EQ(values_of(plain, 3, kContiguous), "[true,false]");
  EXPECT_THAT(plain.notices, IsEmpty());

  const SpaceResult wrong = on_processors(R"({"zero_optimization": {"stage": 2, "contiguous_gradients": false}})");
  EXPECT_EQ(*find(wrong.base_config, kContiguous), true);
  EXPECT_THAT(wrong.notices, ElementsAre(HasSubstr("reduces no gradient")));

  const SpaceResult third = on_processors(R"({"zero_optimization": {"stage": 3, "contiguous_gradients": false}})");
  EXPECT_EQ(*find(third.base_config, kContiguous), false) << "it is right at stage 3";
  EXPECT_EQ(values_of(third, 1, kContiguous), "[true]");
  EXPECT_EQ(values_of(third, 3, kContiguous), "[true,false]");

  const SpaceResult listed = on_processors(R"({"zero_optimization": {"contiguous_gradients": [false, true]}})");
  EXPECT_EQ(values_of(listed, 2, kContiguous), "[true]");
}

TEST(DefaultSpace, AScalarOfTheUsersIsStillTunedAndStaysInTheBase) {
  const SpaceResult result = build(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 123}, "own": [1, 2]})");
  EXPECT_THAT(keys_of(result, 1), Contains(kReduce));
  EXPECT_EQ(result.base_config,
            parse(R"({"zero_optimization": {"stage": 1, "reduce_bucket_size": 123}, "own": [1, 2]})", ""));
  EXPECT_THAT(stages_of(result), ElementsAre(1, 2, 3));
}

TEST(DefaultSpace, WhatDeepSpeedNoLongerReadsIsTunedWhereAUserListsIt) {
  const SpaceResult result = build(R"({"zero_optimization": {"allgather_bucket_size": [5e7, 5e8]}})");
  EXPECT_EQ(values_of(result, 2, kAllgather), "[50000000,500000000]");
}

TEST(UserLists, ReplaceTheDefaultAxisAndLeaveTheirFirstValueInTheBase) {
  const SpaceResult result = build(R"({"zero_optimization": {"reduce_bucket_size": [5e7, 2e8, 50000000]}})");
  EXPECT_EQ(values_of(result, 1, kReduce), "[50000000,200000000]") << "5e7 and 50000000 are one value";
  EXPECT_EQ(values_of(result, 3, kReduce), "[50000000,200000000]");
  EXPECT_EQ(*find(result.base_config, kReduce), 50000000);
}

TEST(UserLists, AddAxesForOtherScalarKeys) {
  const SpaceResult result = build(R"({"gradient_accumulation_steps": [1, 2], "activation_checkpointing":
      {"partition_activations": [true, false]}, "fp16": {"enabled": true}})");
  EXPECT_EQ(values_of(result, 1, "gradient_accumulation_steps"), "[1,2]");
  EXPECT_EQ(values_of(result, 2, "activation_checkpointing.partition_activations"), "[true,false]");
  EXPECT_EQ(*find(result.base_config, "gradient_accumulation_steps"), 1);
}

TEST(UserLists, OfOneValueFixTheKey) {
  const SpaceResult result = build(R"({"zero_optimization": {"overlap_comm": [false]}})");
  EXPECT_EQ(values_of(result, 2, "zero_optimization.overlap_comm"), "none");
  EXPECT_EQ(*find(result.base_config, "zero_optimization.overlap_comm"), false);
}

TEST(UserLists, WhereDeepSpeedWantsAListOrDoesNotLookAreNoAxes) {
  const char* const kText = R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9, 0.99]}},
      "elasticity": {"micro_batch_sizes": [2, 4]}, "compression_training": {"x": {"y": [1, 2]}},
      "mine": {"z": [1, 2]}, "autotuning": {"metric": ["a"]}})";
  const SpaceResult result = build(kText);
  EXPECT_THAT(keys_of(result, 1), ElementsAre(kReduce));
  EXPECT_EQ(result.base_config, parse(kText, "test"));
}

TEST(UserLists, AreOfferedOnlyWhereDeepSpeedReadsTheKey) {
  const SpaceResult result =
      build(R"({"zero_optimization": {"stage3_prefetch_bucket_size": [1e7, 1e8], "overlap_comm": [true, false]}})",
            {0, 1, 3});
  EXPECT_EQ(values_of(result, 1, "zero_optimization.stage3_prefetch_bucket_size"), "none");
  EXPECT_EQ(values_of(result, 3, "zero_optimization.stage3_prefetch_bucket_size"), "[10000000,100000000]");
  EXPECT_EQ(values_of(result, 0, "zero_optimization.overlap_comm"), "none");
  EXPECT_EQ(values_of(result, 1, "zero_optimization.overlap_comm"), "[true,false]");
}

TEST(UserLists, RefuseWhatCannotBeTried) {
  EXPECT_THAT(refusal(request(R"({"gradient_clipping": []})")),
              AllOf(HasSubstr("gradient_clipping"), HasSubstr("empty list")));
  EXPECT_THAT(refusal(request(R"({"gradient_clipping": [[1]]})")), HasSubstr("not [1]"));
  EXPECT_THAT(refusal(request(R"({"gradient_clipping": [{"a": 1}]})")), HasSubstr("single values only"));
  EXPECT_THAT(refusal(request(R"({"zero_optimization": {"overlap_comm": ["auto", true]}})")),
              HasSubstr("\"auto\" is no value"));
  EXPECT_THAT(refusal(request(R"({"train_batch_size": [8, 16]})")), HasSubstr("train_batch_size follows from"));
  EXPECT_THAT(refusal(request(R"({"gradient_accumulation_steps": [0]})")), HasSubstr("positive integer"));
  EXPECT_THAT(refusal(request(R"({"tensor_parallel": {"autotp_size": [1, 2]}})")), HasSubstr("data-parallel size"));
  EXPECT_THAT(refusal(request(R"({"zero_optimization": {"reduce_bucket_size": ["big"]}})")),
              HasSubstr("reduce_bucket_size is \"big\""));
  EXPECT_THAT(refusal(request("[1]")), HasSubstr("not an object"));
}

TEST(PipelineStages, AreAnAxisAndTheBaseSaysWhatATrialTakes) {
  SpaceRequest four = request(R"({"pipeline": {"stages": [2, 1, 4]}})", {1, 2});
  four.world = {2, 2};
  const SpaceResult result = build_space(four);
  EXPECT_EQ(values_of(result, 1, kPipelineStagesKey), "[2,1,4]");
  EXPECT_EQ(values_of(result, 2, kPipelineStagesKey), "[1]");  // pipelines go with ZeRO 0 and 1
  EXPECT_EQ(tuned_world(result.base_config)->size(), 4);
  EXPECT_EQ(data_parallel_size_of(result.base_config, 99), 2);
  Json trial = result.base_config;
  set(trial, kPipelineStagesKey, 4);
  EXPECT_EQ(data_parallel_size_of(trial, 99), 1);
}

TEST(PipelineStages, OfTheSpaceFileLeaveTheBaseAsItIs) {
  SpaceRequest two = request("{}", {0});
  two.space_file = parse(R"({"pipeline.stages": {"values": [1, 2]}})", "test");
  two.world = {2, 1};
  const SpaceResult result = build_space(two);
  EXPECT_EQ(values_of(result, 0, kPipelineStagesKey), "[1,2]");
  EXPECT_EQ(data_parallel_size_of(result.base_config, 99), 2);
}

TEST(PipelineStages, FixedOnesLeaveTheWorldUnsaid) {
  SpaceRequest two = request(R"({"pipeline": {"stages": 2}})", {0, 1});
  two.world = {2, 1};
  EXPECT_FALSE(tuned_world(build_space(two).base_config).has_value());
}

TEST(PipelineStages, MustBeNumbersThatDivideTheSlots) {
  SpaceRequest four = request(R"({"pipeline": {"stages": [1, 3]}})");
  four.world = {4, 1};
  EXPECT_THAT(refusal(four), AllOf(HasSubstr("pipeline.stages lists 3"), HasSubstr("4 slots")));
  EXPECT_THAT(refusal(request(R"({"pipeline": {"stages": [0]}})")), HasSubstr("pipeline.stages lists 0"));
  EXPECT_THAT(refusal(request(R"({"pipeline": {"stages": ["two"]}})")), HasSubstr("pipeline.stages lists \"two\""));
}

TEST(Stages, AListOrAllInTheConfigurationRestrictsThem) {
  const SpaceResult listed = build(R"({"zero_optimization": {"stage": [2, 3]}})");
  EXPECT_THAT(stages_of(listed), ElementsAre(2, 3));
  EXPECT_EQ(zero_stage(listed.base_config), 2);
  const SpaceResult all = build(R"({"zero_optimization": {"stage": "all", "overlap_comm": true}})");
  EXPECT_THAT(stages_of(all), ElementsAre(1, 2, 3));
  EXPECT_EQ(zero_stage(all.base_config), 1);
  const SpaceResult partly = build(R"({"zero_optimization": {"stage": [0, 3]}})");
  EXPECT_THAT(stages_of(partly), ElementsAre(3));
  EXPECT_EQ(zero_stage(partly.base_config), 3) << "the base starts from a stage of the space";
  EXPECT_THAT(partly.notices, ElementsAre(HasSubstr("--zero-stages leaves [3]")));
}

TEST(Stages, RefuseWhatIsNoStage) {
  EXPECT_THAT(refusal(request("{}", {})), HasSubstr("stage is wanted"));
  EXPECT_THAT(refusal(request("{}", {1, 4})), HasSubstr("--zero-stages takes"));
  EXPECT_THAT(refusal(request("{}", {-1})), HasSubstr("--zero-stages takes"));
  EXPECT_THAT(refusal(request(R"({"zero_optimization": {"stage": [4]}})")), HasSubstr("2 or 3"));
  EXPECT_THAT(refusal(request(R"({"zero_optimization": {"stage": 7}})")), HasSubstr("zero_optimization.stage is 7"));
  EXPECT_THAT(refusal(request(R"({"zero_optimization": {"stage": [0]}})")), HasSubstr("stage is left"));
}

TEST(Stages, TheUsersKeysForbidThemWithANotice) {
  const SpaceResult result = build(R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})", {0, 1, 2});
  EXPECT_THAT(stages_of(result), ElementsAre(1, 2));
  EXPECT_THAT(result.notices, ElementsAre(AllOf(HasSubstr("ZeRO stage 0"), HasSubstr("the configuration: "),
                                                HasSubstr("offload_optimizer.device cpu"))));
}

TEST(Stages, AnEmptyRestNamesRuleAndKeys) {
  EXPECT_THAT(refusal(request(R"({"pipeline": {"stages": 2}})", {2, 3})),
              AllOf(HasSubstr("; stage 2: "), HasSubstr("; stage 3: "), HasSubstr("pipeline.stages is 2"),
                    HasSubstr("zero_optimization.stage is 2"), HasSubstr("zero_optimization.stage is 3")));
  EXPECT_THAT(refusal(request(R"({"zero_optimization": {"offload_param": {"device": "cpu"}}})", {1, 2})),
              AllOf(HasSubstr("parameter offload"), HasSubstr("ZeRO 3")));
  EXPECT_THAT(refusal(request(R"({"zero_optimization": {"cpu_offload": true}})", {0})), HasSubstr("cpu_offload true"));
  EXPECT_THAT(refusal(request(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})")),
              AllOf(HasSubstr("; stages 1, 2, 3: "), HasSubstr("fp16.enabled and bf16.enabled")));
}

TEST(Rules, TakeForbiddenValuesOutOfAnAxisAtThatStageOnly) {
  const SpaceResult result =
      build(R"({"zero_optimization": {"offload_param": {"device": ["none", "cpu"], "pin_memory": [true, false]}}})");
  EXPECT_EQ(values_of(result, 3, kParamDevice), R"(["none","cpu"])");
  EXPECT_EQ(values_of(result, 2, kParamDevice), "none") << "what is left equals the base";
  EXPECT_EQ(values_of(result, 2, "zero_optimization.offload_param.pin_memory"), "none");
  EXPECT_THAT(result.notices, Contains(HasSubstr("stage 2 leaves out zero_optimization.offload_param.device \"cpu\"")));
}

TEST(Rules, AListGivesTheBaseItsFirstValueThatIsAllowedAtTheBasesStage) {
  SpaceResult result = build(R"({"zero_optimization": {"offload_param": {"device": ["cpu", "none"]}}})", {1, 2});
  EXPECT_EQ(*find(result.base_config, kParamDevice), "none");
  EXPECT_THAT(stages_of(result), ElementsAre(1, 2));
  result = build(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": ["cpu", "none"]}}})");
  EXPECT_EQ(*find(result.base_config, kParamDevice), "cpu");
  result =
      build(R"({"zero_optimization": {"stage": 0, "offload_optimizer": {"device": ["cpu", "nvme", "none"]}}})", {0, 1});
  EXPECT_EQ(*find(result.base_config, "zero_optimization.offload_optimizer.device"), "none");
  result = build(R"({"zero_optimization": {"offload_param": {"device": ["cpu"]}}})");
  EXPECT_EQ(*find(result.base_config, kParamDevice), "cpu") << "allowed at the only stage that is left";
}

TEST(Rules, ADefaultThatIsForbiddenIsReplacedByAnAxis) {
  const SpaceResult result = build(R"({"prescale_gradients": true})");
  EXPECT_THAT(stages_of(result), ElementsAre(1, 2, 3));
  for (const int stage : {2, 3}) {
    EXPECT_EQ(values_of(result, stage, "zero_optimization.reduce_scatter"), "[false]") << stage;
    EXPECT_EQ(values_of(result, stage, "zero_optimization.contiguous_gradients"), "[true,false]") << stage;
  }
  EXPECT_THAT(result.notices,
              Contains(AllOf(HasSubstr("stage 2"), HasSubstr("zero_optimization.reduce_scatter true"))));
}

TEST(Rules, ASectionOfTheSpaceFileTakesTheOlderSwitchsPlace) {
  SpaceRequest both = request(R"({"zero_optimization": {"cpu_offload": true, "cpu_offload_param": false}})");
  both.space_file = parse(R"({"zero_optimization.offload_optimizer.pin_memory": [true, false]})", "test");
  Json base = build_space(both).base_config;
  EXPECT_EQ(find(base, "zero_optimization.cpu_offload"), nullptr);
  EXPECT_EQ(*find(base, "zero_optimization.offload_optimizer.device"), "cpu");
  EXPECT_NE(find(base, "zero_optimization.cpu_offload_param"), nullptr);
}

TEST(Rules, AnOlderSwitchIsNoAxisBesideWhatReplacedIt) {
  SpaceRequest both = request("{}");
  both.space_file = parse(R"({"zero_optimization.cpu_offload": [false, true],
                              "zero_optimization.offload_optimizer.device": ["none", "cpu"]})",
                          "test");
  EXPECT_THAT(refusal(both), HasSubstr("cpu_offload and zero_optimization.offload_optimizer"));
}

TEST(Rules, OneReasonOfSeveralStagesIsGivenOnce) {
  const SpaceResult result = build(R"({"optimizer": {"type": "SGD"}})", {0, 1, 2, 3});
  EXPECT_THAT(stages_of(result), ElementsAre(0));
  EXPECT_THAT(result.notices, ElementsAre(AllOf(HasSubstr("stages 1, 2, 3"), HasSubstr("the configuration: "),
                                                HasSubstr("zero_allow_untested_optimizer"))));
}

TEST(Rules, KeepAValueThatMustBeWrittenOverTheBase) {
  const SpaceResult result =
      build(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": ["cpu", "none"]}}})");
  EXPECT_EQ(*find(result.base_config, kParamDevice), "cpu");
  EXPECT_EQ(values_of(result, 2, kParamDevice), R"(["none"])");
  EXPECT_THAT(stages_of(result), ElementsAre(1, 2, 3));
}

TEST(Rules, AnAxisWithNoLegalValueForbidsTheStage) {
  const SpaceResult result =
      build(R"({"zero_optimization": {"offload_optimizer": {"device": ["cpu", "nvme"]}}})", {0, 1, 2});
  EXPECT_THAT(stages_of(result), ElementsAre(1, 2));
  EXPECT_THAT(result.notices, ElementsAre(HasSubstr("ZeRO stage 0")));
}

TEST(Rules, ABadBucketSizeIsLeftOutWithANotice) {
  const SpaceResult result = build(R"({"zero_optimization": {"reduce_bucket_size": [1e6, 0, 2e6]}})", {1});
  EXPECT_EQ(values_of(result, 1, kReduce), "[1000000,2000000]");
  EXPECT_THAT(result.notices, ElementsAre(HasSubstr("reduce_bucket_size")));
}

TEST(DefaultSpace, CanBeLeftOutSoThatOnlyListsAreTuned) {
  SpaceRequest only_lists = request(R"({"zero_optimization": {"reduce_bucket_size": [1e6, 2e6]}})");
  only_lists.default_axes = false;
  const SpaceResult result = build_space(only_lists);
  EXPECT_THAT(keys_of(result, 1), ElementsAre(kReduce));
  EXPECT_THAT(keys_of(result, 3), ElementsAre(kReduce));
}

TEST(Stages, AllOfThemMayStandForTheWholeSection) {
  const SpaceResult result = build(R"({"zero_optimization": "all"})", {0, 1, 2, 3});
  EXPECT_THAT(stages_of(result), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(*find(result.base_config, "zero_optimization.stage"), 0);
}

TEST(MicroBatch, BoundsComeFromOptionsAndFromAList) {
  SpaceRequest bounded = request(R"({"train_micro_batch_size_per_gpu": [4, 16, 8]})");
  SpaceResult result = build_space(bounded);
  EXPECT_EQ(result.space.min_micro_batch, 4);
  EXPECT_EQ(result.space.max_micro_batch, 16);
  EXPECT_EQ(*find(result.base_config, "train_micro_batch_size_per_gpu"), 4);
  EXPECT_THAT(keys_of(result, 1), ElementsAre(kReduce));
  bounded.rules.min_micro_batch = 6;
  bounded.rules.max_micro_batch = 12;
  result = build_space(bounded);
  EXPECT_FALSE(result.space.allows_micro_batch(5));
  EXPECT_TRUE(result.space.allows_micro_batch(6));
  EXPECT_TRUE(result.space.allows_micro_batch(12));
  EXPECT_FALSE(result.space.allows_micro_batch(13));
}

TEST(MicroBatch, AScalarIsNoBound) {
  const SpaceResult result = build(R"({"train_micro_batch_size_per_gpu": 4})");
  EXPECT_EQ(result.space.min_micro_batch, 1);
  EXPECT_EQ(result.space.max_micro_batch, std::nullopt);
  EXPECT_TRUE(result.space.allows_micro_batch(1000));
  EXPECT_FALSE(result.space.allows_micro_batch(0));
  EXPECT_FALSE(result.space.allows_micro_batch(-4));
}

TEST(MicroBatch, AGlobalBatchLeavesItsDivisors) {
  SpaceRequest fixed = request("{}");
  fixed.global_batch = 96;
  fixed.dp_size = 4;
  const Space space = build_space(fixed).space;
  EXPECT_EQ(space.micro_batch_divides, 24);
  for (int64_t micro_batch = 1; micro_batch <= 25; ++micro_batch) {
    EXPECT_EQ(space.allows_micro_batch(micro_batch), 24 % micro_batch == 0) << micro_batch;
  }
}

TEST(MicroBatch, NothingLeftIsAnError) {
  SpaceRequest bad = request("{}");
  bad.rules.min_micro_batch = 8;
  bad.rules.max_micro_batch = 4;
  EXPECT_THAT(refusal(bad), AllOf(HasSubstr("no micro batch"), HasSubstr("is 8"), HasSubstr("largest 4")));
  bad.rules.min_micro_batch = 0;
  EXPECT_THAT(refusal(bad), AllOf(HasSubstr("--min-micro-batch"), HasSubstr("at least 1")));

  SpaceRequest global = request("{}");
  global.dp_size = 4;
  global.global_batch = 98;
  EXPECT_THAT(refusal(global), AllOf(HasSubstr("--global-batch 98"), HasSubstr("data-parallel size 4")));
  global.global_batch = 0;
  EXPECT_THAT(refusal(global), HasSubstr("--global-batch is 0"));
  global.global_batch = 4 * 13;
  global.rules.min_micro_batch = 2;
  global.rules.max_micro_batch = 12;
  EXPECT_THAT(refusal(global), AllOf(HasSubstr("no micro batch"), HasSubstr("divides")));
  global.global_batch = 4 * 16;
  EXPECT_NO_THROW(build_space(global));
}

TEST(MicroBatch, AccumulationCannotBeTunedUnderAGlobalBatch) {
  SpaceRequest fixed = request(R"({"gradient_accumulation_steps": [1, 2]})");
  fixed.global_batch = 8;
  EXPECT_THAT(refusal(fixed), AllOf(HasSubstr("gradient_accumulation_steps"), HasSubstr("--global-batch")));
}

TEST(SpaceJson, RoundTrips) {
  SpaceRequest full = request(R"({"seed": [true, null, "x", 1.5]})");
  full.global_batch = 64;
  full.rules.max_micro_batch = 32;
  const Space space = build_space(full).space;
  const Json json = to_json(space);
  const Space back = space_from_json(parse(json.dump(), "test"));
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.max_micro_batch, 32);
  EXPECT_EQ(back.micro_batch_divides, 64);
  EXPECT_EQ(back.stages.size(), 3u);
  EXPECT_EQ(back.stage(0), nullptr);
}

TEST(SpaceJson, RefusesWhatItDidNotWrite) {
  for (const char* text : {"{}", "[]", "null", R"({"min_micro_batch": "x"})",
                           R"({"min_micro_batch": 1, "max_micro_batch": null, "micro_batch_divides": null,
                               "stages": [{"stage": 1}]})"}) {
    const Json json = parse(text, "test");
    EXPECT_THAT(error_of([&] { space_from_json(json); }), HasSubstr("to_json()")) << text;
  }
}

TEST(Overrides, WriteStageAxesAndMicroBatch) {
  const StageSpace stage = {2, {{kReduce, {1000000, 5000000}}, {"gradient_clipping", {0.5, 1.0}}}};
  EXPECT_EQ(overrides(stage, {1, 0}, 8).dump(),
            R"({"zero_optimization":{"stage":2,"reduce_bucket_size":5000000},"gradient_clipping":0.5,)"
            R"("train_micro_batch_size_per_gpu":8})");
}

TEST(Overrides, RefuseAChoiceThatDoesNotFit) {
  const StageSpace stage = {2, {{kReduce, {1000000}}}};
  EXPECT_THAT(error_of([&] { overrides(stage, {}, 8); }),
              AllOf(HasSubstr("0 values"), HasSubstr("1 axes"), HasSubstr("stage 2")));
  EXPECT_THAT(error_of([&] { overrides(stage, {1}, 8); }), HasSubstr("choice 1"));
}

}  // namespace
}  // namespace dsat::config
