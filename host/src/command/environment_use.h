// Finds out whether a command's script gets its configuration or its port from the environment.
// Threading: pure except for reading files. Errors: none; a file that cannot be read names nothing.
#ifndef DSAT_HOST_COMMAND_ENVIRONMENT_USE_H_
#define DSAT_HOST_COMMAND_ENVIRONMENT_USE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "command/command_args.h"
#include "dsat/error.h"

namespace dsat::host {

// The variable with the path of a trial's configuration file.
inline constexpr const char* kConfigVariable = "DSAT_DS_CONFIG";

// Whether a word sets a variable, as a shell takes it before a program: NAME=value.
bool is_assignment(const std::string& word);

// Returns the command with `env` before it if it begins with variables, since no shell runs it.
Argv with_env(Argv command);

// Variables that name a configuration: Lightning's and accelerate's.
inline constexpr const char* kLightningVariable = "PL_DEEPSPEED_CONFIG_PATH";
inline constexpr const char* kAccelerateVariable = "ACCELERATE_DEEPSPEED_CONFIG_FILE";

// Returns the place before the script where the command sets such a variable.
std::vector<FlagUse> config_variables(const Argv& command);

// Returns the configuration as the command's script takes it. Lightning (PL_DEEPSPEED_CONFIG_PATH) refuses a file with
// an accumulation, which its Trainer sets.
Json as_script_takes_it(const Argv& command, Json config);

// Whether an argument, or a file that it names, contains DSAT_DS_CONFIG or imports the package dsat, which reads it.
// `cwd`: where the command runs.
bool reads_config_variable(const Argv& command, const std::filesystem::path& cwd);

// The language in which a text sets a variable: NAME=value in a shell, an assignment to the environment in Python;
// either: a script without an ending. Other texts, such as a configuration, set nothing.
enum class Language { python, shell, either, other };
Language language_of(const std::filesystem::path& file, std::string_view text);

// Whether the text gives the variable a fixed value that does not hide all devices.
bool sets_variable(std::string_view text, std::string_view name, Language language);

// Whether a shell text uses the variable and never gives it a fixed value.
bool reads_variable(std::string_view text, std::string_view name);

// Whether a script of the command sets CUDA_VISIBLE_DEVICES to the same devices in every trial.
bool script_sets_visible_devices(const Argv& command, const std::filesystem::path& cwd);

// Whether a script of the command sets MASTER_PORT to a number, the same in every trial.
bool script_fixes_port(const Argv& command, const std::filesystem::path& cwd);

// Whether a script of the command reads MASTER_PORT, or contains distributed_port, DeepSpeed's argument for it.
bool sets_port(const Argv& command, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ENVIRONMENT_USE_H_
