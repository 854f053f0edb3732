// A launcher that the command starts where dsat cannot give it a trial's port and devices: within the text of a shell
// (`bash -c "..."`), or in a script of one.
//
// Threading: pure but for reading scripts. Errors: none; a file that cannot be read holds no launcher.
#ifndef DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_
#define DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_

#include <filesystem>
#include <string>

#include "command/command_args.h"

namespace dsat::host {

// Where it is ("run.sh", "the words of bash -c"); empty: there is none. One that is beside MASTER_PORT follows the
// trial by itself. `cwd`: where the command runs.
std::string hidden_launcher(const Argv& command, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_
