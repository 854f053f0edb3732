// An experiment file of Determined's, read: what its keys ask of a study.
//
// Threading: plain values. Errors: dsat::Error "FILE:LINE:COLUMN: KEY ...", what to do; nothing is run.
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
  std::optional<int> slots_per_trial;    // --slots-per-trial: wins over the file's
  std::vector<std::string> environment;  // of this process, for PATH
};

struct Experiment {
  std::string name, description;
  std::vector<std::string> command;  // launch modules of Determined's replaced
  std::optional<std::filesystem::path> ds_config;
  Json config_overwrites = Json::object();
  Json hyperparameters = Json::object();
  std::optional<int> slots_per_trial;  // nullopt: as the command says
  std::optional<int> max_slots;
  std::optional<int> max_restarts;     // of a trial that failed
  std::optional<std::string> metric;   // searcher.metric, where it is one that dsat knows
  std::vector<std::string> variables;  // NAME=value
  Json document;                       // all of the file
  std::vector<std::string> notices;    // keys without effect, and what else deserves a line
};

Experiment read_experiment(const ExperimentRequest& request);

}  // namespace dsat::cli

#endif  // DSAT_CLI_DETERMINED_READ_EXPERIMENT_H_
