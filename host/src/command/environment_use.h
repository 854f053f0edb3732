// Does a command's script take its configuration, or its port, from the environment?
//
// Threading: pure but for reading files. Errors: none; a file that cannot be read names nothing.
#ifndef DSAT_HOST_COMMAND_ENVIRONMENT_USE_H_
#define DSAT_HOST_COMMAND_ENVIRONMENT_USE_H_

#include <filesystem>
#include <string_view>

#include "command/command_args.h"

namespace dsat::host {

// The variable that names a trial's configuration file.
inline constexpr const char* kConfigVariable = "DSAT_DS_CONFIG";

// Does an argument, or a file that an argument names, contain DSAT_DS_CONFIG or import the package dsat, which reads
// it? `cwd`: where the command runs.
bool reads_config_variable(const Argv& command, const std::filesystem::path& cwd);

// How a text gives a variable a value: NAME=value in a shell's, an assignment to the environment in Python's; a script
// without an ending may be of either. Others, such as a configuration, set nothing.
enum class Language { python, shell, either, other };
Language language_of(const std::filesystem::path& file, std::string_view text);

// Does the text give the variable a value of its own, whatever it had, and not one that hides all devices?
bool sets_variable(std::string_view text, std::string_view name, Language language);

// Does a shell's text use the variable, and nowhere give it a value of its own?
bool reads_variable(std::string_view text, std::string_view name);

// Does a script that the command names set CUDA_VISIBLE_DEVICES, to devices that are the same in every trial?
bool script_sets_visible_devices(const Argv& command, const std::filesystem::path& cwd);

// Does a script that the command names set MASTER_PORT to a number, the same in every trial?
bool script_fixes_port(const Argv& command, const std::filesystem::path& cwd);

// Does a script that the command names read MASTER_PORT, or contain distributed_port, by which DeepSpeed is given one?
bool sets_port(const Argv& command, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_ENVIRONMENT_USE_H_
