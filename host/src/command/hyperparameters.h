// The hyperparameters of an experiment file, as the script of a trial finds them: in a JSON file that the environment
// names.
//
// Threading: pure functions.
#ifndef DSAT_HOST_COMMAND_HYPERPARAMETERS_H_
#define DSAT_HOST_COMMAND_HYPERPARAMETERS_H_

#include <filesystem>

#include "dsat/error.h"

namespace dsat::host {

inline constexpr const char* kHyperparametersVariable = "DSAT_HPARAMS";
inline constexpr const char* kExperimentVariable = "DSAT_EXPERIMENT";  // all of the experiment file, as JSON
inline constexpr const char* kExperimentFile = "experiment.json";      // in the run directory
inline constexpr const char* kBestHyperparametersFile = "best_hparams.json";
inline constexpr const char* kBestDeepSpeedEnvFile = "best_deepspeed_env";

// The user's hyperparameters with what belongs to one configuration: deepspeed_config names `config_file`,
// overwrite_deepspeed_args holds all of `config`, so that a script which merges the two has the configuration whatever
// file it begins with; a ds_config that is an object is `config`; global_batch_size, if there is one, follows.
Json trial_hyperparameters(Json hyperparameters, const Json& config, const std::filesystem::path& config_file);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_HYPERPARAMETERS_H_
