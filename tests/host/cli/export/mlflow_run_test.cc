// The status in MLflow of a trial without an end.
#include "export/mlflow_run.h"

#include <gtest/gtest.h>

namespace dsat::cli {
namespace {

std::string status_of_open(host::StudyStatus study, host::TrialPlace place) {
  host::StudyFacts facts;
  facts.record.status = study;
  facts.record.trials.resize(1);
  facts.record.trials[0].attempt = 1;
  facts.record.trials[0].started_at = "2026-01-01T00:00:00Z";
  facts.trials.resize(1);
  facts.trials[0].place = place;
  const auto runs = mlflow_runs(facts);
  return runs.size() == 1 ? runs[0].status : "not exported";
}

TEST(MlflowRun, ATrialWithoutAnEndRunsOnlyWhereAHostRunsIt) {
  EXPECT_EQ(status_of_open(host::StudyStatus::running, host::TrialPlace::running), "RUNNING");
  EXPECT_EQ(status_of_open(host::StudyStatus::running, host::TrialPlace::waiting), "SCHEDULED");
  EXPECT_EQ(status_of_open(host::StudyStatus::interrupted, host::TrialPlace::waiting), "KILLED");
}

}  // namespace
}  // namespace dsat::cli
