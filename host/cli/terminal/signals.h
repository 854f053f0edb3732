// Signals and crashes that end a study, and the line that names the cause.
//
// Purpose: the first INT, TERM or HUP stops the study and saves everything. The second ends the process at once, even
//   if a trial or plugin hangs. A plugin that does not answer is named. If a plugin crashes this process or calls
//   exit(), the process ends with status 4 and one line that names the plugin and the event. CONT means that a shell
//   had the terminal meanwhile.
// Threading: a StudyWatch is constructed and destroyed on the main thread, one at a time, before the study starts
//   threads: they inherit the mask that blocks these signals, and only the watch's own thread receives them. Any thread
//   may call continued_since_last_asked().
#ifndef DSAT_CLI_TERMINAL_SIGNALS_H_
#define DSAT_CLI_TERMINAL_SIGNALS_H_

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "dsat/host/study.h"

namespace dsat::cli {

// Makes a reader that goes away (head) an error of write() instead of the end of the program.
void ignore_broken_pipes();

// The parent may have left SIGCHLD ignored. The system would then discard the exit statuses of our children.
void stop_ignoring_children();

// From now on, if a plugin crashes this process or calls exit(), the process ends with status 4 and one line that names
// the plugin and the call, even while the plugin is loaded. Call it on the main thread.
void name_plugins_that_crash();

// Adds a signal that is to be blocked and waited for. nohup and shells that run background jobs ignore some signals on
// purpose, and a blocked signal would arrive although it is ignored.
void add_unless_ignored(sigset_t& signals, int signal);

class StudyWatch {
 public:
  // `resume_options`: further options for `dsat-host resume DIR`, each after a blank.
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
  int signals_ = -1, end_ = -1;                     // descriptors: readable on a signal; readable at the end
  int asked_ = 0;                                   // number of signals so far
  std::chrono::steady_clock::time_point deadline_;  // after the second signal
  std::string reported_call_;                       // the plugin call that was last reported to hang
  struct sigaction before_continue_;
  std::thread thread_;
};

// Was this program stopped (Ctrl-Z) and continued since the last call?
bool continued_since_last_asked();

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_SIGNALS_H_
