// Options of searchers that were not chosen: the error for one names the searchers that have it.
//
// Threading: as find_strategy(), which reads plugins' descriptions. Errors: those of what is read.
#ifndef DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_
#define DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_

#include <vector>

#include "dsat/error.h"
#include "dsat/host/plugins.h"
#include "options/kit.h"

namespace dsat::cli {

// Gives each option that only these searchers have its own error. The set has the chosen plugins' options by now.
void explain_options_of(OptionSet& set, const std::vector<host::PluginInfo>& searchers);

// What read() returns, which reads a command line with the set. Searchers are opened only where that is refused; then
// it is read once more, for the better error.
template <typename Read>
auto read_or_explain(OptionSet& set, const host::PluginProcesses& processes, const Read& read) {
  try {
    return read();
  } catch (const Error&) {
    explain_options_of(set, host::own_strategies(host::PluginKind::searcher, processes));
    return read();
  }
}

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_OTHER_SEARCHERS_H_
