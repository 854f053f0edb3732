#include "commands/commands.h"
#include "dsat/error.h"
#include "options/actions.h"
#include "terminal/exit_status.h"

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
    case Action::estimate:
      return estimate(rest, console);
    case Action::plugins:
      return plugins(rest, console);
    case Action::tune:
    case Action::tune_experiment:
      break;
  }
  return kUsage;
}

}  // namespace

int run(const Tokens& arguments, Console& console) {
  int status = kFailed;
  try {
    status = dispatch(arguments, console);
  } catch (const Error& error) {
    console.error(error.what());
    status = kUsage;
  } catch (const std::exception& error) {
    console.error(std::string("an error of its own: ") + error.what());
  }
  return console.finish(status);
}

}  // namespace dsat::cli
