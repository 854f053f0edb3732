// Watches a study that another process runs.
//
// Threading: called on the main thread; returns when the study has ended, or when nobody reads the output any more.
// Errors: dsat::Error if the study can no longer be read.
#ifndef DSAT_CLI_COMMANDS_FOLLOW_H_
#define DSAT_CLI_COMMANDS_FOLLOW_H_

#include <filesystem>

#include "terminal/console.h"

namespace dsat::cli {

// Shows the progress as the running process does, without the trials that have ended before.
void follow(const std::filesystem::path& dir, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_FOLLOW_H_
