// dsat-host: tunes a training command. Sets up streams and signals, then hands over to commands/dispatch.cc.
// Everything else is a library, so that its pieces can be tested.
#include "commands/commands.h"
#include "terminal/signals.h"

int main(int argc, char** argv) {
  dsat::cli::open_missing_standard_streams();
  dsat::cli::ignore_broken_pipes();
  dsat::cli::Console console;
  return dsat::cli::run(dsat::cli::Tokens(argv + (argc > 0 ? 1 : 0), argv + argc), console);
}
