// Finds options of dsat-host that were typed after the training script, which therefore gets them.
//
// Threading: reads the script, and is otherwise a pure function. Errors: none; a script that cannot be read counts as
// empty.
#ifndef DSAT_CLI_OPTIONS_MISPLACED_OPTION_H_
#define DSAT_CLI_OPTIONS_MISPLACED_OPTION_H_

#include <filesystem>
#include <optional>
#include <string>

#include "options/kit.h"

namespace dsat::cli {

// A notice about the first option with a value that stands after the script of `command` and that the script does not
// mention. nullopt: no such option, or `command` has no script (*.py), so that nobody knows the owner of an option.
std::optional<std::string> notice_of_misplaced_option(const OptionSet& set, const Tokens& command,
                                                      const std::filesystem::path& cwd);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_MISPLACED_OPTION_H_
