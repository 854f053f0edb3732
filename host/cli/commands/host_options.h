// The options of dsat-host itself, one set for each command. --help shows the defaults of host::StudyOptions.
// Threading: pure functions. Errors: none.
#ifndef DSAT_CLI_COMMANDS_HOST_OPTIONS_H_
#define DSAT_CLI_COMMANDS_HOST_OPTIONS_H_

#include "options/kit.h"

namespace dsat::cli {

inline constexpr const char* kDefaultSearcher = "guided";

// Leaves an option out of --help: this form refuses it with a message that names the right option.
void hide(OptionSet& set, const char* name);

OptionSet tune_options();
OptionSet experiment_options();
OptionSet resume_options();
OptionSet show_options();
OptionSet report_options();
OptionSet serve_options();
OptionSet export_options();
OptionSet best_options();
OptionSet check_options();
OptionSet plugins_options();
OptionSet validate_options();
OptionSet new_plugin_options();
OptionSet man_options();
OptionSet estimate_options();

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_HOST_OPTIONS_H_
