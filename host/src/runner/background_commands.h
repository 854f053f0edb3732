// Commands that run beside the trials, for example to end a trial on another machine.
// Threading: control thread only. Ownership: the destructor waits up to ten seconds for running commands. Errors: none;
// a command that cannot be started is ignored, since a trial's end does not depend on it alone.
#ifndef DSAT_HOST_RUNNER_BACKGROUND_COMMANDS_H_
#define DSAT_HOST_RUNNER_BACKGROUND_COMMANDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "command/command_args.h"
#include "dsat/host/environment.h"

namespace dsat::host {

class BackgroundCommands {
 public:
  explicit BackgroundCommands(Loop& loop) : loop_(loop) {}
  ~BackgroundCommands();

  // Looks for the program in the PATH of `environment`. Calls `then` when the command has ended, not if it cannot be
  // started.
  void run(const Argv& argv, const Environment& environment, std::function<void()> then = {});

 private:
  Loop& loop_;
  std::map<uint64_t, std::unique_ptr<Subprocess>> running_;
  uint64_t next_ = 0;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_BACKGROUND_COMMANDS_H_
