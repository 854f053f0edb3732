// Is a plugin fit for use? Tries it in many ways, each in a process of its own.
//
// Threading: one thread. Errors: Status::invalid: there is no such file, or the checks cannot be run.
#ifndef DSAT_HOST_VALIDATE_H_
#define DSAT_HOST_VALIDATE_H_

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "dsat/host/settings.h"
#include "dsat/host/status.h"

namespace dsat::host {

enum class CheckStatus { passed, warned, failed, crashed };
const char* to_string(CheckStatus status);

struct CheckResult {
  std::string check;     // "determinism"
  std::string strategy;  // of the library; empty: the check is of the library itself
  CheckStatus status = CheckStatus::passed;
  std::string reason;  // one line; empty where it passed and there is nothing to add
};

// Calls back after each check. A library that cannot be loaded is not checked any further. `host_options`: names
// without dashes that the program's own options have, and that a plugin's had better not.
Status validate_plugin(const std::filesystem::path& file, const PluginProcesses& processes,
                       const std::function<void(const CheckResult&)>& on_result,
                       const std::vector<std::string>& host_options = {});

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_H_
