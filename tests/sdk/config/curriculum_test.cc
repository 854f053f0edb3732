// Curricula at their full difficulty: the schedules of DeepSpeed's two sections.
#include "dsat/config/curriculum.h"

#include <gtest/gtest.h>

#include "dsat/config/json.h"

namespace dsat::config {
namespace {

Json raised(const char* text, bool expected = true) {
  Json config = Json::parse(text);
  EXPECT_EQ(train_at_full_difficulty(config), expected) << text;
  return config;
}

TEST(Curriculum, StartsAtTheLargestDifficulty) {
  for (const char* type : {"fixed_linear", "fixed_root", "custom"}) {
    Json config = Json::parse(R"({"curriculum_learning": {"enabled": true, "min_difficulty": 8, "max_difficulty": 512,
                                  "schedule_config": {"total_curriculum_step": 40, "difficulty_step": 8}}})");
    config["curriculum_learning"]["schedule_type"] = type;
    Json expected = config;
    expected["curriculum_learning"]["min_difficulty"] = 512;
    EXPECT_EQ(raised(config.dump().c_str()), expected);
  }
}

// DeepSpeed takes the list's number as long as it is below max_difficulty.
TEST(Curriculum, AListHoldsTheLargestThatItReaches) {
  const auto list = [](const char* difficulties) {
    const std::string text = std::string(R"({"curriculum_learning": {"enabled": true, "min_difficulty": 1,
        "max_difficulty": 5, "schedule_type": "fixed_discrete", "schedule_config": {"max_step": [3, 6],
        "difficulty": )") + difficulties +
                             "}}}";
    const Json section = raised(text.c_str())["curriculum_learning"];
    EXPECT_EQ(section["max_difficulty"], 5);
    EXPECT_EQ(section["min_difficulty"], section["schedule_config"]["difficulty"][0]);
    return section["schedule_config"]["difficulty"];
  };
  EXPECT_EQ(list("[1, 2, 5]"), Json({5, 5, 5}));
  EXPECT_EQ(list("[1, 2, 4]"), Json({4, 4, 4})) << "it never gets to its maximum";
  EXPECT_EQ(list("[1, 6, 9]"), Json({6, 6, 6})) << "the schedule ends at the maximum";
}

TEST(Curriculum, EveryMetricOfDataEfficiency) {
  const Json config = raised(R"({"data_efficiency": {"enabled": true, "data_sampling": {"enabled": true,
      "curriculum_learning": {"enabled": true, "data_cluster_path": "c", "curriculum_metrics": {
        "seqlen": {"min_difficulty": 64, "max_difficulty": 2048, "schedule_type": "fixed_linear"},
        "vocabularyrarity": {"min_difficulty": 1, "max_difficulty": 100, "schedule_type": "fixed_root"}}}}}})");
  const Json* metrics = find(config, "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics");
  EXPECT_EQ((*metrics)["seqlen"]["min_difficulty"], 2048);
  EXPECT_EQ((*metrics)["vocabularyrarity"]["min_difficulty"], 100);
}

TEST(Curriculum, RandomLtdKeepsAllTokens) {
  const char* text = R"({"data_efficiency": {"enabled": true, "data_routing": {"enabled": true, "random_ltd": {
      "enabled": true, "random_ltd_schedule": {"min_value": 128, "max_value": 2048, "schedule_type": "fixed_linear",
        "schedule_config": {"require_steps": 200000, "seq_per_step": 16}}}}}})";
  Json expected = Json::parse(text);
  expected["data_efficiency"]["data_routing"]["random_ltd"]["random_ltd_schedule"]["min_value"] = 2048;
  EXPECT_EQ(raised(text), expected);
}

TEST(Curriculum, WhatIsSwitchedOffOrWrongStaysAsItIs) {
  for (const char* text : {
           "{}",
           R"({"curriculum_learning": {"enabled": false, "min_difficulty": 8, "max_difficulty": 512}})",
           R"({"curriculum_learning": {"enabled": true, "min_difficulty": 8}})",
           R"({"curriculum_learning": true})",
           R"({"data_efficiency": {"enabled": true, "data_sampling": {"enabled": true,
               "curriculum_learning": {"enabled": true, "curriculum_metrics": 3}}}})",
           R"({"data_efficiency": {"enabled": true, "data_routing": {"enabled": false, "random_ltd": {
               "enabled": true, "random_ltd_schedule": {"min_value": 1, "max_value": 2}}}}})",
           R"({"data_efficiency": {"enabled": true, "data_routing": {"enabled": true, "random_ltd": {
               "enabled": true, "random_ltd_schedule": {"min_value": 1, "max_value": "all"}}}}})",
           R"({"data_efficiency": {"enabled": true, "data_routing": {"enabled": true, "random_ltd": 3}}})",
       }) {
    EXPECT_EQ(raised(text, false), Json::parse(text));
  }
}

}  // namespace
}  // namespace dsat::config
