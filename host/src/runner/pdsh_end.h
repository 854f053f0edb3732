// Ends a trial that the deepspeed launcher runs on its hosts through pdsh, and that trial alone.
//
// The launcher itself, when it gets TERM, has pdsh call `pkill -f` on the trial's hosts with a pattern that fits every
// deepspeed launcher of that user and Python there (0.14.5, PDSHRunner.get_cmd): other trials and other jobs end with
// it. The command here names the trial's own port. What it ends ends its ranks; then pdsh returns, and the launcher.
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_RUNNER_PDSH_END_H_
#define DSAT_HOST_RUNNER_PDSH_END_H_

#include <vector>

#include "command/command_args.h"
#include "dsat/host/environment.h"
#include "slots/slot_pool.h"

namespace dsat::host {

// The command that ends this one, a trial's, on the hosts of its slots. Empty: it is not below pdsh, so TERM is right.
Argv pdsh_end_command(const Argv& argv, const std::vector<Slot>& slots, const Environment& environment);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_PDSH_END_H_
