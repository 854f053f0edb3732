// Restarting a study whose host died: what Determined did for its search runner.
//
// Threading: forks, so it is called before any thread is started. The study runs in a child process in a process group
// of its own; signals that arrive here are passed on to it, each once, and this process stops when Ctrl-Z stops it.
#ifndef DSAT_CLI_COMMANDS_RESTART_ON_CRASH_H_
#define DSAT_CLI_COMMANDS_RESTART_ON_CRASH_H_

#include <filesystem>
#include <functional>
#include <string>

#include "terminal/console.h"

namespace dsat::cli {

struct Supervised {
  // In the child. Begins the study, hands its run directory to `started`, runs it, returns the exit status.
  std::function<int(const std::function<void(const std::filesystem::path&)>& started)> begin;
  // In a child. Takes the study in this directory up again.
  std::function<int(const std::filesystem::path&)> resume;
  std::string resume_options{};  // of `dsat-host resume DIR`, each after a blank
};

// Runs `begin`; as long as the child is killed or ends with kFailed (the host or a plugin failed), runs `resume`, at
// most `max_restarts` times in all, and once only where no trial has ended since the last time: a failure that comes
// back by itself is reported, not repeated. A study whose journal is gone is not taken up. What the
// last attempt writes for programs is printed, what the others wrote is not. Returns the exit status of the last one;
// of a killed one kFailed. `dir` becomes the run directory. A standard output that a child could not write is noted in
// `console`, for its finish(), and in no status here.
int supervise(const Supervised& study, int max_restarts, std::filesystem::path& dir, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_RESTART_ON_CRASH_H_
