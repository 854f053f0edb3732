// The host's rules that the bench keeps, each alone.
#include "dsat/testing_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsat/config/json.h"
#include "support/error_of.h"

namespace dsat::testing::rules {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Json kWhole{{"train_micro_batch_size_per_gpu", 4},
                  {"gradient_accumulation_steps", 1},
                  {"train_batch_size", 32},
                  {"zero_optimization", {{"stage", 2}, {"reduce_bucket_size", 500000000}}}};

TEST(TestingRules, IdentityIsThatOfTheHostWithoutWhatFollowsFromTheRest) {
  Json without_batch = kWhole;
  without_batch.erase("train_batch_size");
  EXPECT_EQ(identity(kWhole, false), config::identity(without_batch));
}

TEST(TestingRules, IdentityKnowsWhatIsTheSame) {
  const std::string whole = identity(kWhole, false);
  const Json turned{{"zero_optimization", {{"reduce_bucket_size", 5e8}, {"stage", 2}}},
                    {"gradient_accumulation_steps", "auto"},
                    {"autotuning", {{"enabled", true}}},
                    {"train_micro_batch_size_per_gpu", 4}};
  EXPECT_EQ(identity(turned, false), whole);
  Json other = kWhole;
  other["gradient_accumulation_steps"] = 2;
  EXPECT_NE(identity(other, false), whole);
  EXPECT_EQ(identity(other, true), identity(kWhole, true));
}

TEST(TestingRules, IdentityKnowsTheSizeOfATrialAndAModelInformationRun) {
  const auto with = [](const Json& section) {
    Json config = kWhole;
    config["autotuning"] = section;
    return identity(config, false);
  };
  EXPECT_NE(with({{"num_gpus", 4}, {"num_nodes", 1}}), with({{"num_gpus", 8}, {"num_nodes", 1}}));
  EXPECT_EQ(with({{"num_gpus", 4}}), identity(kWhole, false));
  EXPECT_NE(with({{"model_info", {{"profile", true}}}}), identity(kWhole, false));
}

TEST(TestingRules, AnOptionOfAnotherTypeOrOutOfBoundsIsRefusedInALine) {
  Json declared = Json::array();
  declared.push_back(OptionSpec::integer("n", 3, "").min(1).max(9).json());
  declared.push_back(OptionSpec::number("ratio", 0.5, "").max(1).json());
  declared.push_back(OptionSpec::boolean("fast", true, "").json());
  declared.push_back(OptionSpec::choice("way", {"up", "down"}, "up", "").json());
  const auto error = [&](const Json& given) { return error_of([&] { option_values(declared, given); }); };
  EXPECT_EQ(option_values(declared, {{"n", 9}, {"ratio", 1}}),
            (Json{{"n", 9}, {"ratio", 1}, {"fast", true}, {"way", "up"}}));
  EXPECT_THAT(error({{"n", "six"}}), HasSubstr("'n': \"six\" is"));
  EXPECT_THAT(error({{"n", 0}}), AllOf(HasSubstr("'n': 0"), HasSubstr("min 1")));
  EXPECT_THAT(error({{"ratio", 7}}), AllOf(HasSubstr("'ratio': 7"), HasSubstr("max 1")));
  EXPECT_THAT(error({{"fast", 1}}), HasSubstr("'fast': 1"));
  EXPECT_THAT(error({{"way", "left"}}), AllOf(HasSubstr("'way': \"left\" is"), HasSubstr("[\"up\",\"down\"]")));
}

TEST(TestingRules, ANumberIsReadWhateverStandsInItsPlace) {
  const auto stage = [](const char* config) {
    return whole_number<int>(Json::parse(config), "/zero_optimization/stage"_json_pointer);
  };
  EXPECT_EQ(stage(R"({"zero_optimization": {"stage": 2}})"), 2);
  EXPECT_EQ(stage(R"({"zero_optimization": {"stage": 3.0}})"), 3);
  for (const char* config : {"{}", R"({"zero_optimization": 3})", R"({"zero_optimization": {"stage": "two"}})",
                             R"({"zero_optimization": {"stage": null}})", R"({"zero_optimization": {"stage": 1e30}})",
                             R"({"zero_optimization": {"stage": 5000000000}})", R"({"zero_optimization": [1]})"}) {
    EXPECT_EQ(stage(config), 0) << config;
  }
}

TEST(TestingRules, AStudyIsCompletedWithoutChangingWhatItSays) {
  Study study;
  study.limits.max_concurrent_trials = 4;
  EXPECT_EQ(complete(study).limits.open_trials, 4);
  EXPECT_EQ(complete(study).limits.slots_per_trial, 1);
  EXPECT_EQ(complete(study).limits.max_trials, 0);
  study.limits.open_trials = 6;
  study.limits.data_parallel_size = 8;
  EXPECT_EQ(complete(study).limits.open_trials, 6);
  EXPECT_EQ(complete(study).limits.data_parallel_size, 8);
}

}  // namespace
}  // namespace dsat::testing::rules
