// Names of outcomes: each has one, and it leads back; values of a newer ABI count as failed.
#include "dsat/outcome.h"

#include <gtest/gtest.h>

namespace dsat {
namespace {

TEST(Outcome, NamesAreThoseThatScriptsRead) {
  EXPECT_STREQ(outcome_name(Outcome::completed), "completed");
  EXPECT_STREQ(outcome_name(Outcome::out_of_memory), "out_of_memory");
  EXPECT_STREQ(outcome_name(Outcome::failed), "failed");
  EXPECT_STREQ(outcome_name(Outcome::timed_out), "timed_out");
  EXPECT_STREQ(outcome_name(Outcome::invalid_config), "invalid_config");
  EXPECT_STREQ(outcome_name(Outcome::stopped), "stopped");
  EXPECT_STREQ(outcome_name(Outcome::lost), "lost");
  EXPECT_STREQ(outcome_name(Outcome::diverged), "diverged");
}

TEST(Outcome, ANameLeadsBackToItsOutcome) {
  for (dsat_trial_outcome value = DSAT_TRIAL_COMPLETED; value <= DSAT_TRIAL_DIVERGED; ++value) {
    EXPECT_EQ(outcome_named(outcome_name(outcome_of(value))), static_cast<Outcome>(value));
  }
  EXPECT_EQ(outcome_named("Completed"), std::nullopt);
  EXPECT_EQ(outcome_named(""), std::nullopt);
}

TEST(Outcome, AValueFromANewerHostIsAFailure) {
  EXPECT_EQ(outcome_of(DSAT_TRIAL_DIVERGED + 1), Outcome::failed);
  EXPECT_EQ(outcome_of(-1), Outcome::failed);
  EXPECT_STREQ(outcome_name(static_cast<Outcome>(99)), "failed");
}

}  // namespace
}  // namespace dsat
