// Passes best_cmd.txt to /bin/sh and waits. Signals are set as an interactive shell sets them for a command. The
// training stays in this process group, so that a terminal's Ctrl-C and Ctrl-Z reach it directly.
#include "commands/full_experiment.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsat/base/affix.h"
#include "dsat/base/files.h"
#include "dsat/base/numbers.h"
#include "dsat/base/split.h"
#include "terminal/held_signals.h"

namespace dsat::cli {
namespace {

// Ctrl-C at a terminal reaches the training, too. The training decides what to do, and we wait for its end.
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

struct Process {
  pid_t pid, parent;
};

// The process and all its descendants, from /proc.
std::vector<Process> tree_of(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const auto pid = parse_count(it->path().filename().string());
    if (!pid) continue;
    const std::string stat = try_read_file(it->path() / "stat").bytes;
    const size_t name = stat.rfind(") ");  // "12 (name) S 11 ...": a name may hold anything
    if (name != std::string::npos) children.emplace(std::atoi(stat.c_str() + name + 4), static_cast<pid_t>(*pid));
  }
  std::vector<Process> tree{{root, 0}};
  for (size_t i = 0; i < tree.size(); ++i) {
    const auto [begin, end] = children.equal_range(tree[i].pid);
    for (auto child = begin; child != end; ++child) tree.push_back({child->second, child->first});
  }
  return tree;
}

// The rank of a process by its environment; its workers and helpers inherit it.
std::string place_of(pid_t process) {
  std::string place;
  const std::string environment = try_read_file(fmt::format("/proc/{}/environ", process)).bytes;
  for (const std::string& variable : split(environment, '\0')) {
    if (starts_with(variable, "RANK=") || starts_with(variable, "LOCAL_RANK=")) place.append(variable) += ' ';
  }
  return place;
}

// The shell, and the ranks that a launcher has started: it would end their workers, too, and kill the ranks while they
// save. Without such ranks all processes.
std::vector<pid_t> who_gets_the_signal(pid_t root) {
  std::vector<pid_t> all, chosen{root};
  for (const Process& process : tree_of(root)) {
    all.push_back(process.pid);
    if (process.pid != root && place_of(process.pid) != place_of(process.parent)) chosen.push_back(process.pid);
  }
  return chosen.size() > 1 ? chosen : all;
}

// On TERM or HUP the shell waits for the present command and starts no further one.
constexpr const char* kWaitsForItsCommand = "trap 'exit 143' TERM; trap 'exit 129' HUP\n";

// Starts /bin/sh with the signals of a user's shell. Returns 0 or an errno.
int spawn_shell(const std::string& command, const std::filesystem::path& cwd, bool output_to_stderr,
                const sigset_t& mask, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  if (!cwd.empty()) posix_spawn_file_actions_addchdir_np(&files, cwd.c_str());
  if (output_to_stderr) posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const std::string script = kWaitsForItsCommand + command;
  const char* argv[] = {"sh", "-c", script.c_str(), nullptr};
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

ExitCode run_full_experiment(const std::filesystem::path& dir, const std::filesystem::path& cwd, Console& console) {
  const std::filesystem::path file = dir / "best_cmd.txt";
  std::string command = try_read_file(file).bytes;
  command.erase(command.find_last_not_of('\n') + 1);
  if (command.empty()) {
    console.error(fmt::format("the full training was not run: cannot read its command from {}", file.string()));
    return kFailed;
  }
  console.line(fmt::format("running the full training: {}", one_line(command)));
  const IgnoreInterrupts ignore;
  const HeldSignals signals{SIGTERM, SIGHUP};
  pid_t pid = 0;
  if (const int error = spawn_shell(command, cwd, console.json(), signals.mask_before(), pid)) {
    const std::string in = cwd.empty() ? "" : fmt::format(" in {}", cwd.string());
    console.error(fmt::format("the full training was not run: /bin/sh{}: {}", in, std::strerror(error)));
    return kFailed;
  }
  // TERM and HUP go to the training, which must not keep the devices when nobody waits for it any more.
  const std::optional<int> ended = signals.until_change_of(pid, 0, [&](int signal) {
    for (const pid_t process : who_gets_the_signal(pid)) kill(process, signal);
  });
  if (!ended) {
    console.error(fmt::format("cannot wait for the full training: {}", std::strerror(errno)));
    return kFailed;
  }
  const int status = *ended;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return kBestFound;
  console.error(fmt::format("the full training {}; its command is in {}", how_it_ended(status), file.string()));
  return kNoBest;
}

}  // namespace dsat::cli
