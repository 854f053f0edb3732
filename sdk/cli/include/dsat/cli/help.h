// The help text of an option set. Threading: pure function. Errors: none.
#ifndef DSAT_CLI_HELP_H_
#define DSAT_CLI_HELP_H_

#include <string>

#include "dsat/cli/option_set.h"

namespace dsat::cli_kit {

// The options by group, in the order of declaration, each with its default and its other spellings. No line is wider
// than `columns`.
std::string help_text(const OptionSet& set, unsigned columns);

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_HELP_H_
