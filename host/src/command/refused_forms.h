// Forms of commands that no trial can follow, refused by name before anything runs.
// Threading: pure functions. Errors: dsat::Error, one line that says what to write instead.
#ifndef DSAT_HOST_COMMAND_REFUSED_FORMS_H_
#define DSAT_HOST_COMMAND_REFUSED_FORMS_H_

#include "command/launchers.h"
#include "dsat/host/environment.h"

namespace dsat::host {

// Refuses a tuner or a search for the batch inside the command, options that the launcher refuses itself, and the inner
// program of deepspeed's launcher.
void refuse_forms(const Argv& argv, const LauncherUse& launcher);

// Refuses a command that starts the ranks of one node only and waits for the same command on other nodes. Not for
// schedulers, which start the command on each node.
// `environment`: the variables around the command.
void refuse_part_of_a_job(const Argv& argv, const LauncherUse& launcher, const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_REFUSED_FORMS_H_
