// Checks of a plugin, which run in a separate process.
// Threading: the main thread of the process. Errors: none; the text of an exception is the reason of a failed check.
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
  // Reports the step that comes next, because a crash leaves no other message. Empty text: the step goes on
  // with another call of the plugin.
  std::function<void(const std::string&)> doing;
  std::vector<std::string> host_options{};  // names of dsat-host's own command-line options
};

struct CheckOutcome {
  CheckStatus status = CheckStatus::passed;
  std::string reason;
  std::string digest;  // digest of the strategy's requests; two processes must agree
};

struct Check {
  const char* name;
  bool of_strategy;
  CheckOutcome (*run)(const CheckContext&);
};

// All checks, in the order in which they run. If a library fails one of the first kLoading checks, the others are not
// run.
const std::vector<Check>& all_checks();
inline constexpr size_t kLoading = 4;

// Runs a check for dsat-plugin-host: {"check", "file", "host_options", "id", "kind"} -> {"status", "reason", "digest"}.
Json run_check(const Json& request, const std::function<void(const std::string&)>& doing);

}  // namespace dsat::host

#endif  // DSAT_HOST_VALIDATE_CHECKS_H_
