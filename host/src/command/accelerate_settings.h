// Reads the settings file of `accelerate launch`, and makes such a file for a trial.
//
// Up to version 1.1, the values below `deepspeed_config` in the file have priority over the command's options
// (huggingface/accelerate#3203), so a trial's configuration must be in the file. Threading: pure except for reading the
// file. Errors: dsat::Error if the text cannot be changed; a file that cannot be read is a `problem`.
#ifndef DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_
#define DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command/launchers.h"
#include "dsat/error.h"
#include "dsat/host/environment.h"

namespace dsat::host {

struct AccelerateSettings {
  std::filesystem::path file;                     // empty: there is none, or it cannot be read
  std::string text;                               // of the file
  std::optional<int> num_processes;               // of all machines
  std::string deepspeed_config_file;              // empty: none
  Json section = Json::object();                  // deepspeed_config
  std::string distributed_type, mixed_precision;  // empty: not given
  std::string problem;                            // why the file that the command names cannot be read; empty: it can
};

// Reads the file that the command names, or else the file that `accelerate config` writes. `named`: the file or preset
// of trl's --accelerate_config, if a training YAML has it; empty: none. `cwd`: where the command runs.
AccelerateSettings read_accelerate_settings(const Argv& argv, const LauncherUse& launcher,
                                            const std::filesystem::path& cwd, const Environment& environment,
                                            const std::string& named = "");

// Returns "FILE:LINE:COLUMN" of a dotted key.
std::string place_in(const AccelerateSettings& settings, const std::string& key);

// Returns a copy of the settings with other values for dotted keys; null leaves a key out. nullopt: nothing changes.
using SettingsChanges = std::vector<std::pair<std::string, Json>>;
std::optional<std::string> changed_settings(const AccelerateSettings& settings, const SettingsChanges& changes);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ACCELERATE_SETTINGS_H_
