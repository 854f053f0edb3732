// The command that trains with the best configuration: what best_cmd.txt holds.
//
// Threading: control thread; may copy the model folder once. Errors: none, a folder that cannot be copied is not used.
#ifndef DSAT_HOST_STUDY_RESULTS_BEST_COMMAND_H_
#define DSAT_HOST_STUDY_RESULTS_BEST_COMMAND_H_

#include <string>

#include "command/command_template.h"
#include "dsat/error.h"
#include "plan/plan.h"

namespace dsat::host {

// The folder in the run directory where the full training runs: a copy of the model folder with its includes.
inline constexpr const char* kFullExperimentFolder = "full_experiment";

// One line that a shell runs, with the variables that an experiment file set. `writes`: the files of the run directory
// that the line names are written, too.
std::string best_command(const Plan& plan, const CommandTemplate& command, const Json& config, bool writes = true);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESULTS_BEST_COMMAND_H_
