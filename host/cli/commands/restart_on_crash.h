// Restarts a study whose host has died, as Determined restarts its search runner.
//
// Threading: supervise() forks, so it is called before any thread is started. The study runs in a child process with a
// process group of its own. Signals are passed on to the child once each, and this process stops when Ctrl-Z stops the
// child.
#ifndef DSAT_CLI_COMMANDS_RESTART_ON_CRASH_H_
#define DSAT_CLI_COMMANDS_RESTART_ON_CRASH_H_

#include <filesystem>
#include <functional>
#include <string>

#include "terminal/console.h"

namespace dsat::cli {

struct Supervised {
  // Runs in the child: begins the study, passes the run directory to `started`, and returns the study's exit status.
  std::function<int(const std::function<void(const std::filesystem::path&)>& started)> begin;
  // Runs in a child: resumes the study in this directory.
  std::function<int(const std::filesystem::path&)> resume;
  std::string resume_options{};  // options for `dsat-host resume DIR`, each after a blank
};

// Runs `begin`. While the child is killed or ends with kFailed (the host or a plugin failed), runs `resume`, at most
// `max_restarts` times. If no trial has ended since the last restart, the same failure would come back, so there is no
// further restart. A study without a journal is not resumed. Only the data of the last attempt are printed. Returns the
// exit status of the last attempt, kFailed if it was killed. `dir` becomes the run directory. `console` gets the errno
// of a child that could not write to standard output, and finish() reports it.
int supervise(const Supervised& study, int max_restarts, std::filesystem::path& dir, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_RESTART_ON_CRASH_H_
