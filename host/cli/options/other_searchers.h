// Options of searchers that were not chosen: the error names the searchers that have the option.
//
// Threading: as find_strategy(), which reads plugins' descriptions. Errors: those of find_strategy() and of `read`.
#ifndef DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_
#define DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_

#include <vector>

#include "dsat/error.h"
#include "dsat/host/plugins.h"
#include "options/kit.h"

namespace dsat::cli {

// Gives each option that only these searchers have an error of its own. Call it when the set has the options of the
// chosen plugins.
void explain_options_of(OptionSet& set, const std::vector<host::PluginInfo>& searchers);

// Returns read(), which reads a command line with the set. If that fails, all searchers are opened and read() runs
// again, for a better error.
template <typename Read>
auto read_or_explain(OptionSet& set, const host::PluginProcesses& processes, const Read& read) {
  try {
    return read();
  } catch (const Error&) {
    explain_options_of(set, host::bundled_strategies(host::PluginKind::searcher, processes));
    return read();
  }
}

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_
