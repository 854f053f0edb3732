// What dsat-host writes, and ends with, where an exception comes up to the top of the program.
//
// Threading: as Console. Errors: none.
#ifndef DSAT_CLI_TERMINAL_FAILURE_H_
#define DSAT_CLI_TERMINAL_FAILURE_H_

#include <functional>

#include "terminal/console.h"

namespace dsat::cli {

// Runs `body` and returns its exit status. An exception becomes one line on standard error and its own status: what
// other libraries say about themselves is put in our words.
int guarded(Console& console, const std::function<int()>& body);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_FAILURE_H_
