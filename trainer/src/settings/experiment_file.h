// Experiment files: what a trial reads as its hyperparameters, data and name.
//
// Threading: pure functions. Errors: dsat::Error, one line that names the file and the place in it.
#ifndef DSAT_TRAINER_SETTINGS_EXPERIMENT_FILE_H_
#define DSAT_TRAINER_SETTINGS_EXPERIMENT_FILE_H_

#include <string>

#include "dsat/error.h"

namespace dsat::trainer {

// An object. FILE.yaml and FILE.yml are YAML, Determined's experiment files say; all others are JSON.
Json load_experiment(const std::string& file);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_SETTINGS_EXPERIMENT_FILE_H_
