// What trials on other hosts need, checked before the first of them: the launcher's tools, and every host.
//
// Threading: control thread; waits for ssh, for all hosts at once. Errors: dsat::Error, one line.
#ifndef DSAT_HOST_RUNNER_PREFLIGHT_H_
#define DSAT_HOST_RUNNER_PREFLIGHT_H_

#include <chrono>
#include <filesystem>

#include "command/command_template.h"
#include "dsat/host/environment.h"
#include "slots/slots.h"

namespace dsat::host {

struct PreflightRequest {
  const SlotPlan& slots;
  const CommandTemplate& command;
  const Environment& environment;  // PATH decides which ssh and pdsh are meant
  std::filesystem::path cwd;       // that every host must see,
  std::filesystem::path run_dir;   // and this one, or the folder that it will lie in: the first rank writes into it
  std::chrono::milliseconds timeout{std::chrono::seconds(15)};
};

// Does nothing where all slots are this machine's: neither pdsh nor ssh is needed there.
void check_hosts(const PreflightRequest& request);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PREFLIGHT_H_
