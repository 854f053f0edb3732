// Finds a launcher where dsat cannot give it a trial's port and devices, and a configuration where dsat cannot replace
// it: in the text of `bash -c "..."` or in a shell script. Threading: pure except for reading scripts. Errors: none; a
// file that cannot be read has no launcher.
#ifndef DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_
#define DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_

#include <filesystem>
#include <optional>
#include <string>

#include "command/command_args.h"

namespace dsat::host {

// Returns the launcher's place ("run.sh", "the words of bash -c"); empty: there is no hidden launcher. A launcher that
// is given MASTER_PORT does not count. `cwd`: where the command runs.
std::string hidden_launcher(const Argv& command, const std::filesystem::path& cwd);

// A flag that names a configuration in such a text.
struct HiddenConfig {
  std::string file;    // as it is written there
  std::string script;  // the shell script; empty: the text is a word of the command
};
std::optional<HiddenConfig> hidden_config(const Argv& command, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_HIDDEN_LAUNCHER_H_
