// When a search is given up, and how many trials it may have open.
// Plain values, without a study.
#include "search/stopping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dsat::search {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(FailureStreak, StopsAfterSixtyFourFailuresWithTheLastReason) {
  FailureStreak failures;
  for (int i = 0; i < 63; ++i) failures.add(Outcome::failed, "a typo");
  EXPECT_FALSE(failures.reason_to_stop());
  failures.add(Outcome::timed_out, "too slow");
  EXPECT_THAT(failures.reason_to_stop(), Optional(AllOf(HasSubstr("64 trials"), HasSubstr("too slow"))));
}

TEST(FailureStreak, ATrialThatShowsSomethingEndsIt) {
  FailureStreak failures;
  for (int i = 0; i < 64; ++i) failures.add(Outcome::failed, "a typo");
  failures.add(Outcome::out_of_memory, "");
  EXPECT_FALSE(failures.reason_to_stop());
  EXPECT_EQ(failures.last_reason, "a typo");
}

// It cost no run, and axes that clash refuse a large share of a space.
TEST(FailureStreak, BearsManyRefusedConfigurationsBetweenItsTrials) {
  FailureStreak failures;
  for (int i = 0; i < 63; ++i) failures.add(Outcome::failed, "a typo");
  for (int i = 0; i < 511; ++i) failures.add(Outcome::invalid_config, "a rule");
  EXPECT_FALSE(failures.reason_to_stop());
  FailureStreak hopeless = failures;
  hopeless.add(Outcome::invalid_config, "the last rule");
  EXPECT_THAT(hopeless.reason_to_stop(), Optional(AllOf(HasSubstr("512 configurations"), HasSubstr("the last rule"))));
  failures.add(Outcome::failed, "a typo");
  EXPECT_THAT(failures.reason_to_stop(), Optional(AllOf(HasSubstr("64 trials"), HasSubstr("a typo"))));
}

TEST(MostOpenTrials, CountsSpareTrialsAndIsAtLeastOne) {
  Study study;
  study.limits.max_concurrent_trials = 0;
  study.limits.open_trials = 0;
  EXPECT_EQ(most_open_trials(study), 1);
  study.limits.max_concurrent_trials = 5;
  study.limits.open_trials = 6;
  EXPECT_EQ(most_open_trials(study), 6);
}

}  // namespace
}  // namespace dsat::search
