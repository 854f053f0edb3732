// A trial's script gets the hyperparameters of an experiment file in a JSON file that an environment variable names.
// Threading: pure functions.
#ifndef DSAT_HOST_VARIABLES_HYPERPARAMETERS_H_
#define DSAT_HOST_VARIABLES_HYPERPARAMETERS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::host {

inline constexpr const char* kHyperparametersVariable = "DSAT_HPARAMS";
inline constexpr const char* kExperimentVariable = "DSAT_EXPERIMENT";  // the whole experiment file as JSON
inline constexpr const char* kExperimentFile = "experiment.json";      // in the run directory
inline constexpr const char* kBestHyperparametersFile = "best_hparams.json";
inline constexpr const char* kBestDeepSpeedEnvFile = "best_deepspeed_env";

// Puts a configuration into the user's hyperparameters: deepspeed_config names `config_file`; overwrite_deepspeed_args
// is all of `config`, for scripts that merge the two; a ds_config that is an object becomes `config`; global_batch_size
// is updated if there is one.
Json trial_hyperparameters(Json hyperparameters, const Json& config, const std::filesystem::path& config_file);

}  // namespace dsat::host

#endif  // DSAT_HOST_VARIABLES_HYPERPARAMETERS_H_
