// The commands of dsat-host: one function for tuning and one for each sub-command. Each returns the exit status.
//
// `arguments` begin after the sub-command's name. Threading: called on the main thread. Errors: dsat::Error for wrong
// usage; run() throws nothing.
#ifndef DSAT_CLI_COMMANDS_COMMANDS_H_
#define DSAT_CLI_COMMANDS_COMMANDS_H_

#include "options/kit.h"
#include "terminal/console.h"

namespace dsat::cli {

int tune(const Tokens& arguments, Console& console);
int space(const Tokens& arguments, Console& console);
// `arguments` may begin with the search method.
int tune_experiment(const Tokens& arguments, Console& console);
int resume(const Tokens& arguments, Console& console);
int best(const Tokens& arguments, Console& console);
int check(const Tokens& arguments, Console& console);
int show(const Tokens& arguments, Console& console);
int report_page(const Tokens& arguments, Console& console);
int serve(const Tokens& arguments, Console& console);
int export_study(const Tokens& arguments, Console& console);
int estimate(const Tokens& arguments, Console& console);
int plugins(const Tokens& arguments, Console& console);
int validate(const Tokens& arguments, Console& console);
int new_plugin(const Tokens& arguments, Console& console);
int completion(const Tokens& arguments, Console& console);
int man(const Tokens& arguments, Console& console);

// The sub-commands that the manual page and the completions have; the program itself is an empty word.
std::vector<std::string> words_of_manual();

// The whole program, after its streams and signals are set up.
int run(const Tokens& arguments, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_COMMANDS_H_
