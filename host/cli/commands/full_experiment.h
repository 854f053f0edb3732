// --run-full-experiment: runs the user's training with the best configuration.
//
// Threading: called on the main thread. While it waits, it ignores interrupts, because a terminal sends them to the
// training, too, and passes TERM and HUP on. Errors: printed, and returned as the status.
#ifndef DSAT_CLI_COMMANDS_FULL_EXPERIMENT_H_
#define DSAT_CLI_COMMANDS_FULL_EXPERIMENT_H_

#include <filesystem>

#include "terminal/console.h"
#include "terminal/exit_status.h"

namespace dsat::cli {

// Runs the command in DIR/best_cmd.txt with the shell, in the folder `cwd` (empty: the current one), and waits. The
// command writes to our standard output, under --json to standard error. If its status is not 0, prints an error and
// returns kNoBest.
ExitCode run_full_experiment(const std::filesystem::path& dir, const std::filesystem::path& cwd, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_FULL_EXPERIMENT_H_
