// What a command line asks for: the first argument's meaning, and the words that are no command of the user's.
//
// Threading: pure functions. Errors: dsat::Error that says what to type instead.
#ifndef DSAT_APP_GRAMMAR_H_
#define DSAT_APP_GRAMMAR_H_

#include "split.h"

namespace dsat::cli {

enum class Action { tune, resume, show, estimate, plugins };

// By the first argument. Words that later versions know, and the experiment form (asha deepspeed.yaml .), are refused.
Action action_of(const Tokens& arguments);

// The command of a tuning run: refuses none at all and, unless it was set off by "--", a reserved word.
void check_command(const Split& split);

}  // namespace dsat::cli

#endif  // DSAT_APP_GRAMMAR_H_
