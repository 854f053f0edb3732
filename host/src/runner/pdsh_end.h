// Ends one trial that the deepspeed launcher runs on other hosts through pdsh.
//
// The launcher reacts to SIGTERM by calling `pkill -f` on the trial's hosts with a pattern that matches every deepspeed
// launcher of this user and this Python (0.14.5, PDSHRunner.get_cmd), so it ends other trials and jobs too. The command
// here matches the trial's own port. It ends the launchers on the hosts and thereby the ranks; then pdsh and the main
// launcher end.
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_RUNNER_PDSH_END_H_
#define DSAT_HOST_RUNNER_PDSH_END_H_

#include <vector>

#include "command/command_args.h"
#include "dsat/host/environment.h"
#include "slots/slot_pool.h"

namespace dsat::host {

// Returns the command that ends the trial with `argv` on the hosts of `slots`. Empty: the trial does not use pdsh; use
// SIGTERM.
Argv pdsh_end_command(const Argv& argv, const std::vector<Slot>& slots, const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PDSH_END_H_
