// Signals while a study runs: INT, TERM and HUP stop it, the first time saving everything, the second time at once:
// where that takes longer than a moment, because something hangs, the program ends without it. CONT says that a shell
// has had the terminal meanwhile.
//
// Threading: constructed and destroyed on the main thread, one at a time; continued_since_last_asked() on any.
#ifndef DSAT_CLI_TERMINAL_SIGNALS_H_
#define DSAT_CLI_TERMINAL_SIGNALS_H_

#include <csignal>

#include "dsat/host/study.h"

namespace dsat::cli {

// A reader that goes away (head) is an error of write(), not the end of a study.
void ignore_broken_pipes();

class StopOnSignal {
 public:
  explicit StopOnSignal(host::Study& study);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  struct sigaction before_[3], alarm_before_;
  struct sigaction before_continue_;
};

// Was this program stopped (Ctrl-Z) and continued since the last call?
bool continued_since_last_asked();

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_SIGNALS_H_
