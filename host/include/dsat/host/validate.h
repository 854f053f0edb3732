// Checks whether a plugin is fit for use, each check in a process of its own.
//
// Threading: one thread. Errors: Status::invalid if there is no such file, or the checks cannot be run.
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
  std::string strategy;  // a strategy of the library; empty: the check is about the library
  CheckStatus status = CheckStatus::passed;
  std::string reason;  // one line; empty if the check passed without a remark
};

// Calls `on_result` after each check. A library that cannot be loaded is not checked further. `host_options`: names,
// without dashes, of the program's own options, which options of a plugin should avoid.
Status validate_plugin(const std::filesystem::path& file, const PluginProcesses& processes,
                       const std::function<void(const CheckResult&)>& on_result,
                       const std::vector<std::string>& host_options = {});

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_H_
