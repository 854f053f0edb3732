// A first look at the command line, before the options of the plugins are known. It finds which plugins to load.
//
// Threading: pure function. Errors: none; split() reports the errors of the command line.
#ifndef DSAT_CLI_OPTIONS_PREVIEW_H_
#define DSAT_CLI_OPTIONS_PREVIEW_H_

#include <optional>
#include <string>

#include "options/kit.h"

namespace dsat::cli {

struct Preview {
  std::optional<std::string> searcher, profiler, ds_config;
  bool autotuning = false;  // DeepSpeed's form
  bool help = false, version = false;
  bool help_all = false;    // --help all
  Tokens plugin_processes;  // the options of the processes that plugins run in
};

Preview preview(const OptionSet& set, const Tokens& arguments, Grammar grammar = Grammar::command);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_PREVIEW_H_
