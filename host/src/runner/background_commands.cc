// Keeps each command by a number until it has ended.
#include "runner/background_commands.h"

#include <algorithm>
#include <utility>

#include "dsat/error.h"

namespace dsat::host {

BackgroundCommands::~BackgroundCommands() {
  using std::chrono::milliseconds;
  const auto end = Loop::Clock::now() + std::chrono::seconds(10);  // the limit for all commands together
  for (auto& [number, process] : running_) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Loop::Clock::now());
    process->wait_for(std::max(milliseconds(0), left));
  }
}

void BackgroundCommands::run(const Argv& argv, const Environment& environment, std::function<void()> then) {
  const uint64_t number = next_++;
  SpawnOptions spawn;
  spawn.argv = {"/bin/sh", "-c", "exec \"$@\"", "sh"};  // sh looks for the program in PATH
  spawn.argv.insert(spawn.argv.end(), argv.begin(), argv.end());
  spawn.environment = environment;
  try {
    running_[number] = Subprocess::spawn(loop_, spawn, [this, number, then = std::move(then)](const ExitStatus&) {
      running_.erase(number);
      if (then) then();
    });
  } catch (const Error&) {
    running_.erase(number);
  }
}

}  // namespace dsat::host
