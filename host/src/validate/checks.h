// Checks of a plugin, which run in a separate process.
// Threading: the main thread of the process. Errors: none; a check that throws has failed for that reason.
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
  PluginInfo plugin;  // for a check of a strategy
  // Called with the next step, since a crash leaves no other message. Empty text: the same step continues with another
  // call.
  std::function<void(const std::string&)> doing;
  std::vector<std::string> host_options{};  // names of dsat-host's own command-line options
};

struct CheckOutcome {
  CheckStatus status = CheckStatus::passed;
  std::string reason;
  std::string digest;  // digest of what the strategy did, to be compared with another process
};

struct Check {
  const char* name;
  bool of_strategy;
  CheckOutcome (*run)(const CheckContext&);
};

// In the order of the checks. If a library fails one of the first kLoading checks, the others are not run.
const std::vector<Check>& all_checks();
inline constexpr size_t kLoading = 4;

// Runs a check for dsat-plugin-host: {"check", "file", "host_options", "id", "kind"} -> {"status", "reason", "digest"}.
Json run_check(const Json& request, const std::function<void(const std::string&)>& doing);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_CHECKS_H_
