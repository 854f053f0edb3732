// What a command line asks for: the first argument's meaning, and the words that are no command of the user's.
//
// Threading: pure functions. Errors: dsat::Error that says what to type instead.
#ifndef DSAT_CLI_OPTIONS_ACTIONS_H_
#define DSAT_CLI_OPTIONS_ACTIONS_H_

#include "options/kit.h"

namespace dsat::cli {

enum class Action {
  tune,
  tune_experiment,
  resume,
  show,
  best,
  check,
  report,
  serve,
  export_study,
  estimate,
  plugins,
  validate,
};

// `help`, `help SUB-COMMAND` and `version` as the options that they mean; all else as it is.
Tokens words_as_options(Tokens arguments);

// By the first argument: a sub-command; a search method, or a *.yaml file before a directory, which begin the
// experiment form. Words that later versions know are refused, and what looks like an experiment form with a misspelt
// method. A word that is near a sub-command and no program is refused with the sub-command.
Action action_of(const Tokens& arguments);

// asha, binary, random, _test.
bool is_search_method(const std::string& word);

// The command of a tuning run: refuses none at all and, unless it was set off by "--", a reserved word.
void check_command(const Split& split);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_ACTIONS_H_
