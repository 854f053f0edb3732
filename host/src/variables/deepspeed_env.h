// Writes the variables that the deepspeed launcher passes to other hosts, besides the few that it passes by itself.
//
// The launcher reads NAME=value lines from .deepspeed_env in the home folder and in its working folder, or from the
// file in DS_ENV_FILE. With Slurm (--launcher slurm) all variables are passed anyway, and a comma in such a file would
// end a variable.
// Threading: any. Ownership: none. Errors: none; a file that cannot be read has no lines.
#ifndef DSAT_HOST_VARIABLES_DEEPSPEED_ENV_H_
#define DSAT_HOST_VARIABLES_DEEPSPEED_ENV_H_

#include <filesystem>
#include <string>

#include "dsat/host/environment.h"

namespace dsat::host {

inline constexpr const char* kDeepSpeedEnvVariable = "DS_ENV_FILE";

// Returns the lines of the user's files, then those of `variables`. `cwd`: where the launcher runs; `caller`: its
// environment, which `variables` override. A value with special characters is left out, because the launcher does not
// quote it in a shell command.
std::string deepspeed_env(const Environment& variables, const Environment& caller, const std::filesystem::path& cwd);

}  // namespace dsat::host

#endif  // DSAT_HOST_VARIABLES_DEEPSPEED_ENV_H_
