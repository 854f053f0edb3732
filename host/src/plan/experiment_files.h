// What the trials of an experiment file find beside their hyperparameters: the file, and the Python packages.
//
// Purpose: both depend on where the study lies and on this installation, so the plan does not keep them. They become
//   variables of every run, and of the command for the best configuration.
// Threading: control thread. Errors: dsat::Error where the file cannot be written.
#ifndef DSAT_HOST_PLAN_EXPERIMENT_FILES_H_
#define DSAT_HOST_PLAN_EXPERIMENT_FILES_H_

#include <filesystem>

#include "dsat/host/environment.h"
#include "plan/plan.h"

namespace dsat::host {

// Adds the variables to the plan, and a notice where there is no package. A study without an experiment file stays as
// it is.
void add_experiment(const std::filesystem::path& launcher, const Environment& environment, Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_EXPERIMENT_FILES_H_
