// The action that a command line asks for, by its first argument.
//
// Threading: pure functions. Errors: dsat::Error that says what to type instead.
#ifndef DSAT_CLI_OPTIONS_ACTIONS_H_
#define DSAT_CLI_OPTIONS_ACTIONS_H_

#include <string>
#include <vector>

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
  space,
  plugins,
  validate,
  new_plugin,
  completion,
  man,
};

// Writes `help`, `help all`, `help SUB-COMMAND` and `version` as options; other words stay.
Tokens words_as_options(Tokens arguments);

// The action of the first argument: a sub-command, or the experiment form if it is a search method or a *.yaml file
// before a directory. Refuses misspelt search methods and misspelt sub-commands that are no programs.
Action action_of(const Tokens& arguments);

std::vector<std::string> sub_command_words();

bool is_search_method(const std::string& word);

// Checks the command of a tuning run: refuses an empty one and, unless "--" precedes it, a command that begins with a
// word of dsat-host.
void check_command(const Split& split);

}  // namespace dsat::cli

#endif  // DSAT_CLI_OPTIONS_ACTIONS_H_
