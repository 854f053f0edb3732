// Conditions between axes: their texts, what they leave of a space, and which configurations break them.
#include "dsat/config/conditions.h"

#include "dsat/config/json.h"
#include "dsat/config/space.h"
#include "support/error_of.h"

namespace dsat::config {
namespace {

using ::testing::HasSubstr;

SpaceResult build(const char* space_file, const char* user_config = "{}", int64_t world_size = 8) {
  SpaceRequest request;
  request.stages = {0, 1, 2, 3};
  request.user_config = parse(user_config, "test");
  request.space_file = parse(space_file, "test");
  request.default_axes = false;
  request.rules.world_size = world_size;
  return build_space(request);
}

std::string complaint_of(const char* space_file, const char* user_config = "{}") {
  return error_of([&] { build(space_file, user_config); });
}

std::string values_of(const Space& space, int stage, const std::string& key) {
  for (const Axis& axis : space.stage(stage)->axes) {
    if (axis.key == key) return Json(axis.values).dump();
  }
  return "none";
}

std::string broken(const Space& space, const char* config) {
  return broken_condition(space.conditions, parse(config, "test"), 8).value_or("");
}

TEST(Conditions, OneAboutTheStageLimitsTheStages) {
  const Space space = build(R"({"gc": {"values": [0, 1], "if": "stage >= 2"}})").space;
  EXPECT_EQ(values_of(space, 1, "gc"), "none");
  EXPECT_EQ(values_of(space, 2, "gc"), "[0,1]");
  EXPECT_TRUE(space.conditions.empty());
  // A key of DeepSpeed has no more stages than DeepSpeed reads it at.
  const char* const key = "zero_optimization.overlap_comm";
  const Space overlap =
      build(R"({"zero_optimization.overlap_comm": {"values": [true, false], "if": "stage != 2"}})").space;
  EXPECT_EQ(values_of(overlap, 0, key), "none");
  EXPECT_EQ(values_of(overlap, 1, key), "[true,false]");
  EXPECT_EQ(values_of(overlap, 2, key), "none");
}

TEST(Conditions, DivisorsOfAFixedNumberAreLeft) {
  const SpaceResult result = build(R"({"tp": {"range": [1, 8], "divides": "world_size"}, "x": {"values": [3, 4],
                                       "divides": 12}})");
  EXPECT_EQ(values_of(result.space, 0, "tp"), "[1,2,4,8]");
  EXPECT_EQ(values_of(result.space, 0, "x"), "[3,4]");
  EXPECT_TRUE(result.space.conditions.empty());
  EXPECT_THAT(result.notices.at(0), HasSubstr("tp 3 is left out: it does not divide world_size = 8"));
}

TEST(Conditions, AConfigurationIsRefusedByTheFirstThatItBreaks) {
  const Space space = build(R"({"mode": ["plain", "full"], "chunk": {"values": [1, 2, 4], "if": ["mode == full",
      "micro_batch > 1"]}, "heads": [2, 3], "tp": {"values": [1, 2, 3], "divides": "heads"}})",
                            R"({"chunk": 2})")
                          .space;
  EXPECT_EQ(space.conditions.size(), 3u);
  EXPECT_EQ(broken(space, R"({"mode": "full", "chunk": 4, "heads": 2, "tp": 2, "train_micro_batch_size_per_gpu": 2})"),
            "");
  EXPECT_EQ(broken(space, R"({"mode": "plain", "chunk": 2, "heads": 3, "tp": 3})"), "");
  EXPECT_EQ(broken(space, R"({"mode": "plain", "chunk": 4, "heads": 3, "tp": 3, "train_micro_batch_size_per_gpu": 2})"),
            "chunk is 4, but only if mode == full");
  EXPECT_EQ(broken(space, R"({"mode": "full", "chunk": 4, "heads": 3, "tp": 3, "train_micro_batch_size_per_gpu": 1})"),
            "chunk is 4, but only if micro_batch > 1");
  EXPECT_EQ(broken(space, R"({"mode": "plain", "chunk": 2, "heads": 3, "tp": 2})"),
            "tp is 2, which does not divide heads");
  const Json config = parse(R"({"mode": "full", "chunk": 4, "train_micro_batch_size_per_gpu": 1})", "test");
  EXPECT_FALSE(broken_condition(space.conditions, config, 8, false));
}

TEST(Conditions, TravelWithTheSpace) {
  const Space space = build(R"({"mode": ["plain", "full"], "chunk": {"values": [1, 2], "if": "mode == full"}})").space;
  const Space copy = space_from_json(to_json(space));
  EXPECT_EQ(broken(copy, R"({"mode": "plain", "chunk": 2})"), "chunk is 2, but only if mode == full");
  EXPECT_FALSE(to_json(build(R"({"mode": ["plain", "full"]})").space).contains("conditions"));
}

TEST(Conditions, AWorldThatDoesNotFitLeavesTheAxisAtItsUsualValue) {
  const SpaceResult result = build(R"({"gc": {"values": [0, 1], "if": "world_size > 8"}})");
  EXPECT_EQ(values_of(result.space, 0, "gc"), "[0]");
  EXPECT_THAT(result.notices.at(0), HasSubstr("\"world_size > 8\" does not hold, world_size is 8"));
  EXPECT_EQ(values_of(build(R"({"gc": {"values": [0, 1], "if": "world_size >= 8"}})").space, 0, "gc"), "[0,1]");
}

TEST(Conditions, ThoseThatCanNeverHoldAreRefused) {
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": "b == 1"}})"),
              HasSubstr("a: its condition \"b == 1\" names 'b', which neither the configuration nor the space has"));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "divides": "b"}})"), HasSubstr("names 'b'"));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": "a == 1"}})"), HasSubstr("names the axis itself"));
  EXPECT_THAT(complaint_of(R"({"b": [1, 2], "a": {"values": [1, 2], "if": "b == 3"}})"),
              HasSubstr("a: no value of b fits \"b == 3\""));
  EXPECT_THAT(complaint_of(R"({"b": [1, 2], "a": {"values": [1, 2], "if": ["b == 1", "b == 2"]}})"),
              HasSubstr("a: no value of b fits \"b == 1\" and \"b == 2\""));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": ["stage == 1", "stage == 3"]}})"),
              HasSubstr("a: no ZeRO stage fits \"stage == 1\" and \"stage == 3\""));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": ["micro_batch < 4", "micro_batch > 8"]}})"),
              HasSubstr("no value of train_micro_batch_size_per_gpu fits"));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [3, 5], "divides": "world_size"}})"),
              HasSubstr("a: no value of [3,5] divides world_size = 8"));
}

TEST(Conditions, TextsThatAreNoneAreRefused) {
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": "stage"}})"), HasSubstr("write it as \"stage == 3\""));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": "stage = 3"}})"), HasSubstr("write it as \"stage == 3\""));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": "== 3"}})"), HasSubstr("write it as \"stage == 3\""));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": "b =="}})"), HasSubstr("write it as \"stage == 3\""));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": 3}})"), HasSubstr("\"if\" is 3"));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "if": []}})"), HasSubstr("\"if\" is []"));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "divides": 0}})"), HasSubstr("name a positive integer"));
  EXPECT_THAT(complaint_of(R"({"a": {"values": [1, 2], "divides": true}})"), HasSubstr("name a positive integer"));
  EXPECT_THAT(complaint_of(R"({"zero_optimization.stage": {"values": [1, 2], "if": "micro_batch > 1"}})"),
              HasSubstr("holds for the whole study"));
}

}  // namespace
}  // namespace dsat::config
