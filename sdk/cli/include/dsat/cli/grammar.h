// The first step of reading a command line: which tokens are options of ours, and which are somebody else's.
//
// Every option is rewritten to its one long form ("-mt 5" becomes "--max-trials=5"), and Boost.Program_options sees
// only that. Alone it would read "-mt 5" as --metric t, let an option of several values swallow the command behind it,
// and guess abbreviations.
// Threading: pure functions. Errors: dsat::Error: what is wrong, what to type.
#ifndef DSAT_CLI_GRAMMAR_H_
#define DSAT_CLI_GRAMMAR_H_

#include <string>
#include <vector>

#include "dsat/cli/option_set.h"

namespace dsat::cli_kit {

using Tokens = std::vector<std::string>;

enum class Grammar {
  // Options come first. They end at "--" or at the first token that no option takes: there the user's command begins. A
  // token that begins with a dash and is not an option is refused.
  command,
  // Options may stand anywhere up to "--". Every other token is an operand.
  operands,
  // Two programs' options stand in any order (a training script's and ours). Ours are spelt to the letter, each takes
  // the next token whatever it is, and every other token is left in its place.
  shared,
};

struct Split {
  Tokens options;             // "--name" or "--name=value"
  Tokens rest;                // the command, the operands, or the tokens that are not ours
  bool after_dashes = false;  // `rest` was set off by "--"
};

Split split(const OptionSet& set, const Tokens& arguments, Grammar grammar);

// The options that can be read before all of them are known: a plugin declares some of its own, and a first look says
// which plugin. Unknown options are skipped, with the token that may be their value. Errors are left to split().
Tokens known_options(const OptionSet& set, const Tokens& arguments, Grammar grammar);

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_GRAMMAR_H_
