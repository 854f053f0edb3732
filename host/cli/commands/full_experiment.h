// --run-full-experiment: the user's training with the best configuration.
//
// Threading: called on the main thread; while it waits it ignores interrupts, which a terminal gives to the training
// too, and passes TERM and HUP on to the training. Errors: printed, and in the status.
#ifndef DSAT_CLI_COMMANDS_FULL_EXPERIMENT_H_
#define DSAT_CLI_COMMANDS_FULL_EXPERIMENT_H_

#include <filesystem>

#include "terminal/console.h"
#include "terminal/exit_status.h"

namespace dsat::cli {

// Runs the command in DIR/best_cmd.txt with the shell, in the folder `cwd` (empty: the current one), and waits. Its
// output goes to ours, under --json to standard error. Anything but its status 0 is kNoBest and an error message.
ExitStatus run_full_experiment(const std::filesystem::path& dir, const std::filesystem::path& cwd, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_FULL_EXPERIMENT_H_
