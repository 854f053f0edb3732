// A profile is checked where it is handed over, member by member.
#include "plugin/profile_check.h"

#include <gmock/gmock.h>

namespace dsat::host {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Json whole() {
  const Json interval{{"value", 2e9}, {"low", 1e9}, {"high", 3e9}};
  return {{"schema", 1},
          {"num_params", 124439808},
          {"trainable_num_params", 124439808},
          {"device_memory_bytes", 85899345920},
          {"world_size", 8},
          {"activation_bytes_per_sample", interval},
          {"fixed_bytes", {{"value", 1}, {"low", 0}, {"high", 2}}},
          {"stages",
           {{{"stage", 1},
             {"model_state_bytes", interval},
             {"max_micro_batch", {{"value", 1}, {"low", 0}, {"high", nullptr}}}}}},
          {"trials", {0, 1, 2}},
          {"activation_mem_per_gpu", 1020000000},
          {"of_a_later_version", {"anything"}}};
}

std::string problem_with(const char* member, const Json& value) {
  Json profile = whole();
  profile[member] = value;
  return profile_problem(profile);
}

TEST(ProfileCheck, TheOneOfTheDocumentationIsRight) {
  EXPECT_EQ(profile_problem(whole()), "");
  EXPECT_EQ(problem_with("device_memory_bytes", nullptr), "");
  EXPECT_EQ(profile_problem({{"schema", 1}, {"num_params", 1000}, {"trials", Json::array()}}), "");
}

TEST(ProfileCheck, SaysBothBoundsOfANumber) {
  EXPECT_THAT(problem_with("num_params", 1e30), AllOf(StartsWith("num_params: 1e+30 "), HasSubstr("1 to 2^53")));
  EXPECT_THAT(problem_with("activation_mem_per_gpu", 1e30), HasSubstr("0 to 2^53"));
  EXPECT_THAT(problem_with("fixed_bytes", {{"value", 1}, {"low", 0}, {"high", 1e30}}),
              AllOf(HasSubstr("high is 1e+30"), HasSubstr("0 to 2^53")));
  EXPECT_THAT(problem_with("world_size", 3000000000), HasSubstr("1 to 2147483647"));
}

TEST(ProfileCheck, NamesTheMemberThatIsWrong) {
  EXPECT_THAT(profile_problem(Json::object()), HasSubstr("no schema"));
  EXPECT_THAT(profile_problem({{"schema", 1}}), HasSubstr("no num_params"));
  EXPECT_THAT(problem_with("schema", 2), StartsWith("schema: 2"));
  EXPECT_THAT(problem_with("num_params", "many"), StartsWith("num_params: \"many\""));
  EXPECT_THAT(problem_with("num_params", -1), StartsWith("num_params"));
  EXPECT_THAT(problem_with("world_size", 0), StartsWith("world_size: 0"));
  EXPECT_THAT(problem_with("world_size", 1.5), StartsWith("world_size"));
  EXPECT_THAT(problem_with("device_memory_bytes", 1e300), StartsWith("device_memory_bytes"));
  EXPECT_THAT(problem_with("fixed_bytes", 7), StartsWith("fixed_bytes: 7 is"));
  EXPECT_THAT(problem_with("fixed_bytes", {{"value", 1}, {"low", 2}, {"high", 3}}), HasSubstr("in the order"));
  EXPECT_THAT(problem_with("fixed_bytes", {{"value", 1}, {"low", nullptr}, {"high", 3}}), HasSubstr("low is null"));
  EXPECT_THAT(problem_with("fixed_bytes", {{"value", 1}, {"low", 0}, {"high", nullptr}}), HasSubstr("high is null"));
  EXPECT_THAT(problem_with("trainable_num_params", 124439809), HasSubstr("is above num_params"));
  EXPECT_THAT(problem_with("stages", {{{"stage", 7}}}), AllOf(HasSubstr("'stage'"), HasSubstr("0 to 3")));
  EXPECT_THAT(problem_with("stages", 3), StartsWith("stages: no array"));
  EXPECT_THAT(problem_with("trials", {-1}), StartsWith("trials: -1 "));
}

}  // namespace
}  // namespace dsat::host
