// The first step of reading a command line: which tokens are options of this program.
//
// Every option is rewritten to its one long form ("-mt 5" becomes "--max-trials=5") before Boost.Program_options reads
// it. Boost alone would read "-mt 5" as --metric t, would let an option with several values take the command behind it,
// and would guess abbreviations.
// Threading: pure functions. Errors: dsat::Error: what is wrong, what to type.
#ifndef DSAT_CLI_GRAMMAR_H_
#define DSAT_CLI_GRAMMAR_H_

#include <string>
#include <vector>

#include "dsat/cli/option_set.h"

namespace dsat::cli_kit {

using Tokens = std::vector<std::string>;

enum class Grammar {
  // Options come first. The user's command begins after "--", or at the first token that belongs to no option. An
  // unknown token that begins with a dash is refused.
  command,
  // Options may stand anywhere up to "--". Every other token is an operand.
  operands,
  // The options of two programs, dsat's and a training script's, stand in any order. Options of dsat are spelt to the
  // letter, each takes the next token whatever it is, and every other token stays in its place.
  shared,
};

struct Split {
  Tokens options;             // "--name" or "--name=value"
  Tokens rest;                // the command, the operands, or the tokens of the other program
  bool after_dashes = false;  // `rest` was set off by "--"
};

Split split(const OptionSet& set, const Tokens& arguments, Grammar grammar);

// The options that can be read before all of them are known. A first look has to find which plugin declares the others.
// Unknown options are skipped, with the token that may be their value. split() reports errors.
Tokens known_options(const OptionSet& set, const Tokens& arguments, Grammar grammar);

}  // namespace dsat::cli_kit

#endif  // DSAT_CLI_GRAMMAR_H_
