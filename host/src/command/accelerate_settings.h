// What `accelerate launch --config_file FILE` finds in its settings file.
//
// Threading: pure but for reading the file. Errors: none; accelerate itself refuses a file that cannot be read.
#ifndef DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_
#define DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_

#include <filesystem>
#include <optional>
#include <string>

#include "command/launchers.h"

namespace dsat::host {

struct AccelerateSettings {
  std::optional<int> num_processes;   // of all machines
  std::string deepspeed_config_file;  // empty: none
};

// Of the file that the command names; accelerate's own options go before it. `cwd`: where the command runs.
AccelerateSettings read_accelerate_settings(const Argv& argv, const LauncherUse& launcher,
                                            const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_
