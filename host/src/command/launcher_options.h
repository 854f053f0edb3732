// The options of the launchers: which are switches, and what an abbreviation stands for.
// Threading: pure functions. Errors: none; what the launcher itself would refuse stays as it is.
#ifndef DSAT_HOST_COMMAND_LAUNCHER_OPTIONS_H_
#define DSAT_HOST_COMMAND_LAUNCHER_OPTIONS_H_

#include <string>

#include "command/launchers.h"

namespace dsat::host {

// Whether the option of a launcher has no value; each can be written with dashes too.
bool is_launcher_switch(const std::string& option);

// Python's argparse takes the begin of a name for the only option that begins so: --num_gpu is --num_gpus. Returns the
// command with such names among the launcher's own written out. accelerate takes none.
Argv without_abbreviations(Argv argv);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_LAUNCHER_OPTIONS_H_
