// The help of dsat-host as a whole: one screen, all options, or the options of the plugins that are named.
//
// Threading: plain functions of the main thread. Errors: none.
#ifndef DSAT_CLI_COMMANDS_PROGRAM_HELP_H_
#define DSAT_CLI_COMMANDS_PROGRAM_HELP_H_

#include "options/kit.h"
#include "options/preview.h"
#include "terminal/console.h"

namespace dsat::cli {

// `set` has the options of the plugins if `wanted` names one.
void print_program_help(const OptionSet& set, const Preview& wanted, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_PROGRAM_HELP_H_
