// Options of dsat-host that stand behind the training script, where they are the script's.
//
// Threading: pure function but for the script, which is read. Errors: none; a script that cannot be read has no words.
#ifndef DSAT_CLI_OPTIONS_MISPLACED_OPTION_H_
#define DSAT_CLI_OPTIONS_MISPLACED_OPTION_H_

#include <filesystem>
#include <optional>
#include <string>

#include "options/kit.h"

namespace dsat::cli {

// A notice of the first option with a value that stands behind the script of `command` and that the script does not
// name itself. Without a script (*.py) nothing is known of whose words they are.
std::optional<std::string> notice_of_misplaced_option(const OptionSet& set, const Tokens& command,
                                                      const std::filesystem::path& cwd);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_MISPLACED_OPTION_H_
