// Turns an exception that reaches the top of the program into a line and an exit status.
//
// Threading: as Console. Errors: none.
#ifndef DSAT_CLI_TERMINAL_FAILURE_H_
#define DSAT_CLI_TERMINAL_FAILURE_H_

#include <functional>

#include "terminal/console.h"

namespace dsat::cli {

// Runs `body` and returns its exit status. An exception becomes one line on standard error, in our words, and a status.
int guarded(Console& console, const std::function<int()>& body);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_FAILURE_H_
