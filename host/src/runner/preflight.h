// Checks before the first trial what trials on other hosts need: the launcher's tools, and every host.
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
  const Environment& environment;  // its PATH finds ssh and pdsh
  std::filesystem::path cwd;       // every host must see it
  std::filesystem::path run_dir;   // every host must see it or its existing parent, since rank 0 writes into it
  std::chrono::milliseconds timeout{std::chrono::seconds(15)};
};

// Does nothing if all slots are on this machine, which needs neither pdsh nor ssh.
void check_hosts(const PreflightRequest& request);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PREFLIGHT_H_
