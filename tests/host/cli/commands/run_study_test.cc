// What the picture of a running study shows.
#include "commands/run_study.h"

#include <gtest/gtest.h>

namespace dsat::cli {
namespace {

TEST(ProgressSettings, AResumedStudysOwnLimitsHold) {
  const Json study{{"metric", "throughput"}, {"max_trials", 40}, {"time_budget_ms", 12000}};
  const ProgressSettings progress = progress_settings(study, {});
  EXPECT_EQ(progress.time_budget, std::chrono::seconds(12));
  EXPECT_EQ(progress.max_trials, 40);
  EXPECT_TRUE(progress.maximise);
}

TEST(ProgressSettings, WithoutABudgetThereIsNone) {
  EXPECT_FALSE(progress_settings(Json{{"time_budget_ms", nullptr}}, {}).time_budget);
  EXPECT_FALSE(progress_settings(Json::object(), {}).time_budget);
}

}  // namespace
}  // namespace dsat::cli
