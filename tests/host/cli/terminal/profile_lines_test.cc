// A profile as lines for people.
#include "terminal/profile_lines.h"

#include <gmock/gmock.h>

namespace dsat::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ProfileLines, StateModelMemoryActivationsAndCeilings) {
  const auto interval = [](double value) { return Json{{"value", value}, {"low", value / 2}, {"high", value * 2}}; };
  const Json profile{{"num_params", 124e6},
                     {"trainable_num_params", 100e6},
                     {"device_memory_bytes", 80e9},
                     {"activation_bytes_per_sample", interval(2e6)},
                     {"stages",
                      {{{"stage", 1}, {"model_state_bytes", interval(1e9)}, {"max_micro_batch", interval(16)}},
                       {{"stage", 2}, {"model_state_bytes", interval(5e8)}, {"max_micro_batch", nullptr}}}}};
  EXPECT_THAT(profile_lines(profile),
              ElementsAre(AllOf(HasSubstr("124 M parameters"), HasSubstr("100 M ")), HasSubstr("device memory: 80"),
                          HasSubstr("per example: 2"), HasSubstr("micro batch 16"), HasSubstr("micro batch unknown")));
}

TEST(ProfileLines, SayWhatIsUnknown) {
  EXPECT_THAT(profile_lines(Json()), IsEmpty());
  EXPECT_THAT(profile_lines(Json{{"num_params", 5}, {"device_memory_bytes", nullptr}}),
              ElementsAre(HasSubstr("5 parameters"), HasSubstr("--device-memory SIZE"), HasSubstr("unknown")));
}

TEST(ProfileLines, ACeilingThatIsAnybodysGuessIsUnknown) {
  const auto line = [](double value, double low) {
    const Json ceiling{{"value", value}, {"low", low}, {"high", 1e9}};
    return profile_lines(Json{{"device_memory_bytes", 1e9}, {"stages", {{{"stage", 1}, {"max_micro_batch", ceiling}}}}})
        .back();
  };
  EXPECT_THAT(line(2.8e7, 191), AllOf(HasSubstr("batch unknown"), HasSubstr("at least 191")));
  EXPECT_THAT(line(300, 191), AllOf(HasSubstr("approximate"), HasSubstr("micro batch 300")));
  EXPECT_THAT(line(20, 0), AllOf(HasSubstr("approximate"), HasSubstr("micro batch 20")));
}

TEST(ProfileLines, WithoutADeviceMemoryACeilingIsOnlyALowerBound) {
  const auto stage = [](int number, double fitted) {
    return Json{{"stage", number}, {"model_state_bytes", 1e9}, {"max_micro_batch", {{"value", fitted}}}};
  };
  EXPECT_THAT(profile_lines(Json{{"device_memory_bytes", nullptr}, {"stages", {stage(1, 4), stage(2, 0)}}}),
              ::testing::IsSupersetOf({std::string("stage 1: model states 1.00 GB, maximum micro batch at least 4"),
                                       std::string("stage 2: model states 1.00 GB, maximum micro batch unknown")}));
}

}  // namespace
}  // namespace dsat::cli
