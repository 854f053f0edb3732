// Finds the command that the arguments name, calls it, and turns exceptions into lines. Each command is a function in a
// file of its own.
#include "commands/commands.h"
#include "options/actions.h"
#include "terminal/exit_status.h"
#include "terminal/failure.h"

namespace dsat::cli {
namespace {

int dispatch(const Tokens& arguments, Console& console) {
  const Action action = action_of(arguments);
  if (action == Action::tune) return tune(arguments, console);
  if (action == Action::tune_experiment) return tune_experiment(arguments, console);
  const Tokens rest(arguments.begin() + 1, arguments.end());
  switch (action) {
    case Action::resume:
      return resume(rest, console);
    case Action::show:
      return show(rest, console);
    case Action::report:
      return report_page(rest, console);
    case Action::serve:
      return serve(rest, console);
    case Action::export_study:
      return export_study(rest, console);
    case Action::best:
      return best(rest, console);
    case Action::check:
      return check(rest, console);
    case Action::estimate:
      return estimate(rest, console);
    case Action::plugins:
      return plugins(rest, console);
    case Action::space:
      return space(rest, console);
    case Action::validate:
      return validate(rest, console);
    case Action::new_plugin:
      return new_plugin(rest, console);
    case Action::completion:
      return completion(rest, console);
    case Action::man:
      return man(rest, console);
    case Action::tune:
    case Action::tune_experiment:
      break;
  }
  return kUsage;
}

}  // namespace

int run(const Tokens& arguments, Console& console) {
  return console.finish(guarded(console, [&] { return dispatch(words_as_options(arguments), console); }));
}

}  // namespace dsat::cli
