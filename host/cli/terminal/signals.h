// What can end a study from outside or from within a plugin, and the line that names it.
//
// Purpose: INT, TERM and HUP stop the study, the first time saving everything, the second time at once: what hangs then
//   is left to die with this process. A plugin that does not answer is named. One that crashes this process or calls
//   exit() in it ends it with one line that names plugin and event, and with status 4. CONT says that a shell has had
//   the terminal meanwhile.
// Threading: a StudyWatch is constructed and destroyed on the main thread, one at a time, before the study's own
//   threads begin: they inherit that these signals are blocked, and a thread of the watch alone receives them.
//   continued_since_last_asked() on any.
#ifndef DSAT_CLI_TERMINAL_SIGNALS_H_
#define DSAT_CLI_TERMINAL_SIGNALS_H_

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "dsat/host/study.h"

namespace dsat::cli {

// A reader that goes away (head) is an error of write(), not the end of a study.
void ignore_broken_pipes();

// A program inherits that SIGCHLD is ignored, and the system would then forget how its children end.
void stop_ignoring_children();

// From now on a plugin that crashes this process or calls exit() in it ends it with status 4 and one line that names
// plugin and call: also while it is loaded, before there is a study. Call it on the main thread.
void name_plugins_that_crash();

// For signals that are to be blocked and waited for. nohup and shells that run jobs in the background ignore some of
// them on purpose, and an ignored one that is blocked would come all the same.
void add_unless_ignored(sigset_t& signals, int signal);

class StudyWatch {
 public:
  // `resume_options`: what `dsat-host resume DIR` is to be given too, each after a blank.
  explicit StudyWatch(host::Study& study, std::string resume_options = "");
  ~StudyWatch();
  StudyWatch(const StudyWatch&) = delete;
  StudyWatch& operator=(const StudyWatch&) = delete;

 private:
  void watch();
  void take_signal();
  int milliseconds_to_wait() const;
  void look_at_plugins();
  void end_if_overdue() const;

  host::Study& study_;
  const std::string resume_options_;
  sigset_t watched_, before_;
  int signals_ = -1, end_ = -1;                     // descriptors: a signal has come; the study has ended
  int asked_ = 0;                                   // so many signals have come
  std::chrono::steady_clock::time_point deadline_;  // after the second signal
  std::string reported_call_;                       // the plugin call that was last reported to hang
  struct sigaction before_continue_;
  std::thread thread_;
};

// Was this program stopped (Ctrl-Z) and continued since the last call?
bool continued_since_last_asked();

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_SIGNALS_H_
