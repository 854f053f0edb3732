// Hands best_cmd.txt to /bin/sh and waits, with signals as an interactive shell sets them for what it runs.
// The command is in one file, so that a person can run it again.
#include "commands/full_experiment.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "dsat/base/files.h"

namespace dsat::cli {
namespace {

// Ctrl-C at a terminal reaches the training too, which decides what to do about it; until it ends we wait.
class IgnoreInterrupts {
 public:
  IgnoreInterrupts() : interrupt_(std::signal(SIGINT, SIG_IGN)), quit_(std::signal(SIGQUIT, SIG_IGN)) {}
  ~IgnoreInterrupts() {
    std::signal(SIGINT, interrupt_);
    std::signal(SIGQUIT, quit_);
  }

 private:
  using Handler = void (*)(int);
  Handler interrupt_, quit_;
};

// Starts /bin/sh with signals as a user's shell has them. 0 or an errno.
int spawn_shell(const std::string& command, bool output_to_stderr, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  if (output_to_stderr) posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const char* argv[] = {"sh", "-c", command.c_str(), nullptr};
  const int error = posix_spawn(&pid, "/bin/sh", &files, &attributes, const_cast<char**>(argv), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

ExitStatus run_full_experiment(const std::filesystem::path& dir, Console& console) {
  const std::filesystem::path file = dir / "best_cmd.txt";
  std::string command = try_read_file(file).bytes;
  command.erase(command.find_last_not_of('\n') + 1);
  if (command.empty()) {
    console.error(fmt::format("the full training was not run: cannot read its command from {}", file.string()));
    return kFailed;
  }
  console.line(fmt::format("running the full training: {}", one_line(command)));
  const IgnoreInterrupts ignore;
  pid_t pid = 0;
  if (const int error = spawn_shell(command, console.json(), pid)) {
    console.error(fmt::format("the full training was not run: /bin/sh: {}", std::strerror(error)));
    return kFailed;
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno == EINTR) continue;
    console.error(fmt::format("lost sight of the full training: {}", std::strerror(errno)));
    return kFailed;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return kBestFound;
  console.error(fmt::format("the full training {}; its command is in {}", how_it_ended(status), file.string()));
  return kNoBest;
}

}  // namespace dsat::cli
