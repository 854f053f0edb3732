// Reads an experiment file of Determined into the values that a study needs.
//
// Threading: plain values. Errors: dsat::Error "FILE:LINE:COLUMN: KEY ..." that says what to do.
#ifndef DSAT_CLI_DETERMINED_READ_EXPERIMENT_H_
#define DSAT_CLI_DETERMINED_READ_EXPERIMENT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::cli {

struct ExperimentRequest {
  std::filesystem::path file, model_dir;
  std::vector<std::filesystem::path> includes;
  std::optional<int> slots_per_trial;    // --slots-per-trial, which beats the file
  std::vector<std::string> environment;  // of this process, for PATH
};

struct Experiment {
  std::string name, description;
  std::vector<std::string> command;  // without launch modules of Determined
  std::optional<std::filesystem::path> ds_config;
  Json config_overwrites = Json::object();
  Json hyperparameters = Json::object();
  std::optional<int> slots_per_trial;  // nullopt: the command decides
  std::optional<int> max_slots;
  std::optional<int> max_restarts;     // of a trial that failed
  std::optional<std::string> metric;   // searcher.metric, if dsat knows it
  std::vector<std::string> variables;  // NAME=value
  Json document;                       // the whole file
  std::vector<std::string> notices;    // such as keys without effect
};

Experiment read_experiment(const ExperimentRequest& request);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DETERMINED_READ_EXPERIMENT_H_
