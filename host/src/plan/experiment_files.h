// Provides the experiment file and the Python packages to the trials of an experiment.
//
// Both depend on the study's folder and on this installation, so they are not in the plan. They become variables of
// every run, and of the command for the best configuration. Threading: control thread. Errors: dsat::Error if the file
// cannot be written.
#ifndef DSAT_HOST_PLAN_EXPERIMENT_FILES_H_
#define DSAT_HOST_PLAN_EXPERIMENT_FILES_H_

#include <filesystem>

#include "dsat/host/environment.h"
#include "plan/plan.h"

namespace dsat::host {

// Adds the variables to the plan, and a notice if there is no package. Does nothing for a study without an experiment
// file.
void add_experiment(const std::filesystem::path& launcher, const Environment& environment, Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_PLAN_EXPERIMENT_FILES_H_
