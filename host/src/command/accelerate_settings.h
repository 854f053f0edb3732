// What `accelerate launch` finds in its settings file, and such a file for a trial.
//
// Up to version 1.1 what the file has below `deepspeed_config` goes before the options of the command
// (huggingface/accelerate#3203): a trial's configuration must stand in the file. Threading: pure but for reading the
// file. Errors: dsat::Error where its text cannot be changed; accelerate itself refuses a file that cannot be read.
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
  std::filesystem::path file;         // empty: there is none, or none that can be read
  std::string text;                   // of the file
  std::optional<int> num_processes;   // of all machines
  std::string deepspeed_config_file;  // empty: none
};

// Reads the file that the command names, else the one that `accelerate config` writes. `cwd`: where the command runs.
AccelerateSettings read_accelerate_settings(const Argv& argv, const LauncherUse& launcher,
                                            const std::filesystem::path& cwd, const Environment& environment);

// The file's text with these values where its section deepspeed_config has these keys; nullopt: it has none of them.
std::optional<std::string> changed_settings(const AccelerateSettings& settings,
                                            const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_
