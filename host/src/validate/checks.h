// The checks of a plugin, as they run in a process of their own.
//
// Threading: the process's main thread. Errors: none: a check that throws has failed, and what it throws is the reason.
#ifndef DSAT_HOST_VALIDATE_CHECKS_H_
#define DSAT_HOST_VALIDATE_CHECKS_H_

#include <functional>
#include <string>
#include <vector>

#include "dsat/host/plugins.h"
#include "dsat/host/validate.h"

namespace dsat::host {

struct CheckContext {
  std::filesystem::path file;
  PluginInfo plugin;  // of a check of a strategy
  // Says what is about to be done: a crash has no other words. Empty: the same goes on, with the next call.
  std::function<void(const std::string&)> doing;
  std::vector<std::string> host_options{};  // names that dsat-host's own options have on the command line
};

struct CheckOutcome {
  CheckStatus status = CheckStatus::passed;
  std::string reason;
  std::string digest;  // of what the strategy did, to be compared with another process's
};

struct Check {
  const char* name;
  bool of_strategy;
  CheckOutcome (*run)(const CheckContext&);
};

// In the order of their table. A library that fails one of the first kLoading cannot be checked any further.
const std::vector<Check>& all_checks();
inline constexpr size_t kLoading = 4;

// What dsat-plugin-host answers: {"check", "file", "host_options", "id", "kind"} -> {"status", "reason", "digest"}.
Json run_check(const Json& request, const std::function<void(const std::string&)>& doing);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_CHECKS_H_
