// Reads the settings file of `accelerate launch`, and makes such a file for a trial.
//
// Up to version 1.1, the values below `deepspeed_config` in the file have priority over the command's options
// (huggingface/accelerate#3203), so a trial's configuration must be in the file. Threading: pure except for reading the
// file. Errors: dsat::Error if the text cannot be changed; accelerate itself refuses a file that cannot be read.
#ifndef DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_
#define DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command/launchers.h"
#include "dsat/host/environment.h"

namespace dsat::host {

struct AccelerateSettings {
  std::filesystem::path file;         // empty: there is none, or it cannot be read
  std::string text;                   // of the file
  std::optional<int> num_processes;   // of all machines
  std::string deepspeed_config_file;  // empty: none
};

// Reads the file that the command names, or else the file that `accelerate config` writes. `cwd`: where the command
// runs.
AccelerateSettings read_accelerate_settings(const Argv& argv, const LauncherUse& launcher,
                                            const std::filesystem::path& cwd, const Environment& environment);

// Sets these values for keys that section deepspeed_config of the text has; nullopt: it has none of them.
std::optional<std::string> changed_settings(const AccelerateSettings& settings,
                                            const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_
