// The first step of reading a command line: which tokens are options of ours, which are the user's command.
//
// Every option is rewritten to its one long form ("-mt 5" becomes "--max-trials=5"), which is all that
// Boost.Program_options then sees: left to itself it reads "-mt 5" as --metric t, lets -z swallow the command, and
// guesses abbreviations.
// Threading: pure functions. Errors: dsat::Error: what is wrong, what to type.
#ifndef DSAT_CLI_OPTIONS_SPLIT_ARGUMENTS_H_
#define DSAT_CLI_OPTIONS_SPLIT_ARGUMENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "options/option_set.h"

namespace dsat::cli {

using Tokens = std::vector<std::string>;

enum class FreeTokens {
  end_options,  // the first one begins the user's command
  interleave,   // a sub-command's operands: options may stand anywhere
};

struct Split {
  Tokens options;             // "--name" or "--name=value"
  Tokens rest;                // the command or the operands
  bool after_dashes = false;  // `rest` was set off by "--"
};

Split split(const OptionSet& set, const Tokens& arguments, FreeTokens free_tokens);

// What has to be known before a plugin's options can be: read leniently, since those options are unknown as yet.
struct Preview {
  std::optional<std::string> searcher, profiler, ds_config;
  bool autotuning = false;  // DeepSpeed's form
  bool help = false, version = false;
};
Preview preview(const OptionSet& set, const Tokens& arguments, FreeTokens free_tokens = FreeTokens::end_options);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_SPLIT_ARGUMENTS_H_
