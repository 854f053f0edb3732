// The variables that the deepspeed launcher takes to other hosts, beside the few that it passes on by itself.
//
// It reads NAME=value lines from .deepspeed_env at home and where it runs, or from the file that DS_ENV_FILE names.
// Below Slurm (--launcher slurm) all variables go along anyway, and a comma in one of that file's would end it.
// Threading: any. Ownership: none. Errors: none; a file that cannot be read has no lines.
#ifndef DSAT_HOST_COMMAND_DEEPSPEED_ENV_H_
#define DSAT_HOST_COMMAND_DEEPSPEED_ENV_H_

#include <filesystem>
#include <string>

#include "dsat/host/environment.h"

namespace dsat::host {

inline constexpr const char* kDeepSpeedEnvVariable = "DS_ENV_FILE";

// The lines of the user's own files, then those of `variables`. `cwd`: where the launcher runs; `caller`: its
// environment, in which `variables` take the place of others. A value that is no plain word is left out: the launcher
// puts it into a shell's line as it is.
std::string deepspeed_env(const Environment& variables, const Environment& caller, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_COMMAND_DEEPSPEED_ENV_H_
