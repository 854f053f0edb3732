// A trial as a run of MLflow: parameters, metrics and tags with names that MLflow takes.
//
// Threading: pure functions. Units: milliseconds since 1970. Errors: none.
#ifndef DSAT_CLI_EXPORT_MLFLOW_RUN_H_
#define DSAT_CLI_EXPORT_MLFLOW_RUN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dsat/host/facts.h"

namespace dsat::cli {

struct MlflowRun {
  std::string id;      // 32 hexadecimal digits, equal in each export of the study
  std::string name;    // "trial 7"
  std::string status;  // RUNNING, SCHEDULED, FINISHED, FAILED or KILLED
  int64_t start_ms = 0, end_ms = 0;
  std::vector<std::pair<std::string, std::string>> params, tags;
  std::vector<std::pair<std::string, double>> metrics;
};

std::vector<MlflowRun> mlflow_runs(const host::StudyFacts& facts);

// Digits that identify the study, from its folder and the time of its first request.
std::string mlflow_experiment_id(const host::StudyFacts& facts);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EXPORT_MLFLOW_RUN_H_
