// Options of searchers that were not chosen: the error for one names the searchers that have it.
//
// Threading: reads plugins' descriptions, as find_strategy() does. Errors: none; a searcher that is not there has no
// options.
#ifndef DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_
#define DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_

#include <vector>

#include "dsat/host/plugins.h"
#include "options/kit.h"

namespace dsat::cli {

// Where the line has an option that the set does not know: dsat's own searchers. Else nothing is opened.
std::vector<host::PluginInfo> searchers_to_ask(const OptionSet& set, const Tokens& arguments,
                                               const host::PluginProcesses& processes);

// Adds a message for each option that only these have. Call it once the set has the chosen plugins' own.
void explain_options_of(OptionSet& set, const std::vector<host::PluginInfo>& searchers);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_
