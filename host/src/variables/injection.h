// The variables with which a script that builds its configuration in Python gets another one.
//
// The hook in the script's processes (host/probe/dsat_inject.py) merges the configuration of DSAT_INJECT over the one
// that the script gives to deepspeed.initialize. Threading: pure functions.
#ifndef DSAT_HOST_VARIABLES_INJECTION_H_
#define DSAT_HOST_VARIABLES_INJECTION_H_

#include <filesystem>
#include <string>
#include <vector>

#include "dsat/host/environment.h"

namespace dsat::host {

inline constexpr const char* kInjectVariable = "DSAT_INJECT";  // the configuration's file
inline constexpr const char* kHookFolder = "probe";            // of the hook, in a run directory

// Puts `env` with the hook and the configuration before a command. `environment`: the caller's, for its PYTHONPATH.
std::vector<std::string> with_injection(std::vector<std::string> argv, const std::filesystem::path& config_file,
                                        const std::filesystem::path& hook, const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_VARIABLES_INJECTION_H_
