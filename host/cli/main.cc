// dsat-host: tunes a training command. Sets up streams and signals, then hands over to commands/dispatch.cc.
// Everything else is a library, so that its pieces can be tested.
#include <malloc.h>

#include "commands/commands.h"
#include "terminal/signals.h"

namespace {

// The C library raises its own limits with each large block that is freed, and keeps more and more for later: a host
// that runs for days makes large texts now and then, and is small in between.
void give_large_blocks_back() { mallopt(M_MMAP_THRESHOLD, 128 * 1024); }

}  // namespace

int main(int argc, char** argv) {
  give_large_blocks_back();
  dsat::cli::open_missing_standard_streams();
  dsat::cli::ignore_broken_pipes();
  dsat::cli::stop_ignoring_children();
  dsat::cli::name_plugins_that_crash();
  dsat::cli::Console console;
  return dsat::cli::run(dsat::cli::Tokens(argv + (argc > 0 ? 1 : 0), argv + argc), console);
}
