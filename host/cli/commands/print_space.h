// Prints what a study with these options would search. Threading: the main thread. Errors: a line, and the exit status.
#ifndef DSAT_CLI_COMMANDS_PRINT_SPACE_H_
#define DSAT_CLI_COMMANDS_PRINT_SPACE_H_

#include "dsat/host/study.h"
#include "terminal/console.h"

namespace dsat::cli {

int print_space(const host::StudyOptions& options, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_PRINT_SPACE_H_
