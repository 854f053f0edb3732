// Finds a launcher where dsat cannot give it a trial's port and devices: in the text of `bash -c "..."` or in a shell
// script.
// Threading: pure except for reading scripts. Errors: none; a file that cannot be read has no launcher.
#ifndef DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_
#define DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_

#include <filesystem>
#include <string>

#include "command/command_args.h"

namespace dsat::host {

// Returns the launcher's place ("run.sh", "the words of bash -c"); empty: there is no hidden launcher. A launcher that
// is given MASTER_PORT does not count. `cwd`: where the command runs.
std::string hidden_launcher(const Argv& command, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_
