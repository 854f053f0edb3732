// Space files: axes that they add, replace or restrict, and entries that are refused.
#include "dsat/config/json.h"
#include "dsat/config/space.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SpaceRequest request(const char* space_file, const char* user_config = "{}") {
  SpaceRequest out;
  out.stages = {1, 2, 3};
  out.user_config = parse(user_config, "test");
  out.space_file = parse(space_file, "test");
  return out;
}

SpaceResult build(const char* space_file, const char* user_config = "{}") {
  return build_space(request(space_file, user_config));
}

std::string refusal(const char* space_file) {
  return error_of([&] { build(space_file); });
}

std::string values_of(const SpaceResult& result, int stage, const std::string& key) {
  for (const Axis& axis : result.space.stage(stage)->axes) {
    if (axis.key == key) return Json(axis.values).dump();
  }
  return "none";
}

TEST(SpaceFile, AddsAxesAndLeavesTheBaseAlone) {
  const SpaceResult result = build(R"({"zero_optimization.stage3_prefetch_bucket_size": [1e7, 5e7]})");
  EXPECT_EQ(values_of(result, 3, "zero_optimization.stage3_prefetch_bucket_size"), "[10000000,50000000]");
  EXPECT_EQ(values_of(result, 2, "zero_optimization.stage3_prefetch_bucket_size"), "none");
  EXPECT_EQ(result.base_config, Json::object());
}

TEST(SpaceFile, RangesStandForTheirValues) {
  const auto range = [](const char* body) {
    return values_of(build((std::string(R"({"my.key": {"range": )") + body + "}}").c_str()), 3, "my.key");
  };
  EXPECT_EQ(range("[3, 6]"), "[3,4,5,6]");
  EXPECT_EQ(range(R"([0, 7], "step": 3)"), "[0,3,6,7]");
  EXPECT_EQ(range(R"([1e6, 5e6], "log": true)"), "[1000000,2000000,4000000,5000000]");
  EXPECT_EQ(range(R"([1, 8], "log": true, "stages": [3])"), "[1,2,4,8]");
  EXPECT_EQ(range(R"([-9e18, 9e18], "step": 8e18)"),
            "[-9000000000000000000,-1000000000000000000,7000000000000000000,"
            "9000000000000000000]");
}

TEST(SpaceFile, TunesOptimizerOffload) {
  const SpaceResult result = build(R"({"zero_optimization.offload_optimizer.device": ["none", "cpu"]})");
  const char* const kKey = "zero_optimization.offload_optimizer.device";
  EXPECT_EQ(values_of(result, 3, kKey), R"(["none","cpu"])");
  EXPECT_EQ(values_of(result, 2, kKey), R"(["none","cpu"])");
  EXPECT_EQ(values_of(result, 1, kKey), R"(["none","cpu"])");
  EXPECT_EQ(result.space.stages.size(), 3u);
}

TEST(SpaceFile, OverridesAnOffloadThatForbidsAStage) {
  const SpaceResult result = build(R"({"zero_optimization.offload_param.device": ["none", "cpu"]})",
                                   R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})");
  EXPECT_EQ(values_of(result, 1, "zero_optimization.offload_param.device"), R"(["none"])");
  EXPECT_EQ(*find(result.base_config, "zero_optimization.offload_param.device"), "cpu");
}

TEST(SpaceFile, ReplacesDefaultsAndTheUsersLists) {
  const SpaceResult result =
      build(R"({"zero_optimization.reduce_bucket_size": [7], "zero_optimization.overlap_comm": [true]})",
            R"({"zero_optimization": {"reduce_bucket_size": [1, 2]}})");
  EXPECT_EQ(values_of(result, 1, "zero_optimization.reduce_bucket_size"), "[7]");
  EXPECT_EQ(values_of(result, 2, "zero_optimization.overlap_comm"), "[true]");
}

TEST(SpaceFile, StagesLimitAnEntry) {
  const SpaceResult result = build(R"({"zero_optimization.overlap_comm": {"stages": [1, 3], "values": [false, true]},
                "gradient_clipping": {"values": [0.5, 1.0]}})");
  EXPECT_EQ(values_of(result, 1, "zero_optimization.overlap_comm"), "[false,true]");
  EXPECT_EQ(values_of(result, 2, "zero_optimization.overlap_comm"), "[true,false]") << "the default stays";
  EXPECT_EQ(values_of(result, 3, "zero_optimization.overlap_comm"), "[false,true]");
  EXPECT_EQ(values_of(result, 2, "gradient_clipping"), "[0.5,1]");
}

TEST(SpaceFile, RestrictsStagesAndMicroBatches) {
  const SpaceResult result = build(R"({"zero_optimization.stage": [1, 3], "train_micro_batch_size_per_gpu": [2, 32]})");
  ASSERT_EQ(result.space.stages.size(), 2u);
  EXPECT_EQ(result.space.stages[1].stage, 3);
  EXPECT_EQ(result.space.min_micro_batch, 2);
  EXPECT_EQ(result.space.max_micro_batch, 32);
}

TEST(SpaceFile, AcceptsKeysOfTheUsersOwnAndBelowFreeSections) {
  const SpaceResult result = build(R"({"my.knob": ["a", "b"], "optimizer.params.lr": [0.1, 0.2]})");
  EXPECT_EQ(values_of(result, 1, "my.knob"), R"(["a","b"])");
  EXPECT_EQ(values_of(result, 1, "optimizer.params.lr"), "[0.1,0.2]");
  EXPECT_EQ(overrides({1, {{"my.knob", {"a"}}}}, {0}, 1)["my"]["knob"], "a");
}

TEST(SpaceFile, RefusesMisspeltKeysWithASuggestion) {
  EXPECT_THAT(refusal(R"({"zero_optimization.stage3_prefetch_bucket_sise": [1]})"),
              AllOf(HasSubstr("the space file: "), HasSubstr("'zero_optimization.stage3_prefetch_bucket_sise'"),
                    HasSubstr("'zero_optimization.stage3_prefetch_bucket_size'?")));
  EXPECT_THAT(refusal(R"({"zero_optimisation.offload_param.device": ["cpu"]})"),
              HasSubstr("'zero_optimization.offload_param.device'?"));
}

TEST(SpaceFile, RefusesEveryUnknownKeyOfAClosedSection) {
  EXPECT_THAT(refusal(R"({"zero_optimization.overlap": [true]})"), HasSubstr("'zero_optimization.overlap_comm'?"));
  EXPECT_THAT(refusal(R"({"zero_optimization.offload_param.pin": [true]})"),
              HasSubstr("unknown key 'zero_optimization.offload_param.pin'"));
  EXPECT_THAT(refusal(R"({"zero_optimization.my_own": [1]})"),
              AllOf(HasSubstr("unknown key 'zero_optimization.my_own'"), HasSubstr("in zero_optimization")));
}

TEST(SpaceFile, RefusesValuesThatDeepSpeedRefuses) {
  SpaceRequest named = request(R"({"zero_optimization.stage": [1, 4]})");
  named.space_name = "--space s.json";
  EXPECT_THAT(error_of([&] { build_space(named); }),
              AllOf(HasSubstr("--space s.json: "), HasSubstr("zero_optimization.stage is 4")));
  EXPECT_THAT(refusal(R"({"zero_optimization.reduce_bucket_size": [1e6, -1]})"),
              AllOf(HasSubstr("the space file: "), HasSubstr("zero_optimization.reduce_bucket_size is -1")));
  EXPECT_THAT(refusal(R"({"zero_optimization.overlap_comm": ["maybe"]})"), HasSubstr("true or false"));
  EXPECT_THAT(refusal(R"({"zero_optimization.offload_optimizer.device": ["none", "gpu"]})"), HasSubstr("\"gpu\""));
}

TEST(SpaceFile, ReadsValuesAsDeepSpeedDoes) {
  const SpaceResult result =
      build(R"({"zero_optimization.overlap_comm": ["yes", false], "zero_optimization.prefetch_bucket_size": [1, 2]})");
  EXPECT_EQ(values_of(result, 2, "zero_optimization.overlap_comm"), "[true,false]");
  EXPECT_EQ(values_of(result, 3, "zero_optimization.stage3_prefetch_bucket_size"), "[1,2]");
}

TEST(SpaceFile, PartitionSizesDivideTheDevices) {
  SpaceRequest four = request(R"({"zero_optimization.zero_hpz_partition_size": [1, 2, 3, 8]})");
  four.rules.world_size = 4;
  EXPECT_THAT(error_of([&] { build_space(four); }),
              AllOf(HasSubstr("the space file: "), HasSubstr("zero_optimization.zero_hpz_partition_size")));
  four.space_file = parse(R"({"zero_optimization.zero_hpz_partition_size": [1, 2, 8]})", "test");
  EXPECT_EQ(values_of(build_space(four), 3, "zero_optimization.zero_hpz_partition_size"), "[1,2,8]");
  EXPECT_EQ(values_of(build_space(four), 2, "zero_optimization.zero_hpz_partition_size"), "none");
}

TEST(SpaceFile, RefusesKeysThatCannotBeTuned) {
  EXPECT_THAT(refusal(R"({"": [1]})"), HasSubstr("is empty"));
  EXPECT_THAT(refusal(R"({"zero_optimization": {"overlap_comm": [true]}})"), HasSubstr("is a section"));
  EXPECT_THAT(refusal(R"({"compile": ["", "--compile"]})"), HasSubstr("has another name, such as use_compile"));
  EXPECT_THAT(refusal(R"({"zero_optimization.stage.x": [1]})"), HasSubstr("zero_optimization.stage.x"));
  EXPECT_THAT(refusal(R"({"elasticity.micro_batch_sizes": [1]})"), HasSubstr("a list"));
  EXPECT_THAT(refusal(R"({"autotuning.fast": [true]})"), HasSubstr("training option"));
  EXPECT_THAT(refusal(R"({"train_batch_size": [8]})"), HasSubstr("train_batch_size follows from"));
}

TEST(SpaceFile, RefusesMalformedEntries) {
  EXPECT_THAT(refusal("[1]"), HasSubstr("dotted keys"));
  EXPECT_THAT(refusal(R"({"gradient_clipping": 1})"), AllOf(HasSubstr("gradient_clipping is 1"), HasSubstr("a list")));
  EXPECT_THAT(refusal(R"({"gradient_clipping": []})"), HasSubstr("empty list"));
  EXPECT_THAT(refusal(R"({"gradient_clipping": [[1]]})"), HasSubstr("single values only"));
  EXPECT_THAT(refusal(R"({"gradient_clipping": ["auto"]})"), HasSubstr("no value"));
  EXPECT_THAT(refusal(R"({"gradient_clipping": {"stages": [1]}})"), HasSubstr("has no \"values\""));
  const std::pair<const char*, const char*> kRanges[] = {{R"([4, 4])", "the smaller first"},
                                                         {R"([1, 2, 3])", "the smaller first"},
                                                         {R"([0.5, 2])", "the smaller first"},
                                                         {R"("1-4")", "the smaller first"},
                                                         {R"([0, 8], "log": true)", "begins at 1 or above"},
                                                         {R"([1, 8], "log": true, "step": 2)", "has no \"step\""},
                                                         {R"([1, 8], "log": 2)", "true or false"},
                                                         {R"([1, 8], "step": 0)", "at least 1"},
                                                         {R"([1, 8], "values": [1])", "keep one"},
                                                         {R"([1, 9e9])", "more than 1000 values"}};
  for (const auto& [range, why] : kRanges) {
    const std::string text = std::string(R"({"gradient_accumulation_steps": {"range": )") + range + "}}";
    EXPECT_THAT(refusal(text.c_str()), HasSubstr(why)) << range;
  }
  EXPECT_THAT(refusal(R"({"gradient_clipping": {"value": [1]}})"), HasSubstr("member 'value'"));
  EXPECT_THAT(refusal(R"({"gradient_clipping": {"values": [1], "stages": 3}})"), HasSubstr("\"stages\" is 3"));
  EXPECT_THAT(refusal(R"({"gradient_clipping": {"values": [1], "stages": [7]}})"), HasSubstr("\"stages\" lists 7"));
  EXPECT_THAT(refusal(R"({"gradient_clipping": {"values": [1], "stages": []}})"), HasSubstr("\"stages\" is []"));
  EXPECT_THAT(refusal(R"({"train_micro_batch_size_per_gpu": {"values": [1], "stages": [1]}})"),
              HasSubstr("whole study"));
}

}  // namespace
}  // namespace dsat::config
