// Reads in /proc each process's parent, session and state (stat) and its mark (environ). Then adds children of the
// trial's processes until there are no more.
#include "local/trial_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/subprocess.h"
#include "dsat/base/utf8.h"

namespace dsat::host {

namespace {

struct Seen {
  pid_t parent = 0, session = 0;
  unsigned long long began = 0;  // ticks since the machine's start
  char state = '?';
  std::string name;
};

// Reads at most `most` bytes. Files in /proc have no size and may be gone.
std::string read_proc(pid_t pid, const char* file, size_t most) {
  const int fd = open(fmt::format("/proc/{}/{}", pid, file).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  std::string text(4096, '\0');
  size_t size = 0;
  while (size < most) {
    if (size == text.size()) text.resize(std::min(most, 2 * text.size()));
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  close(fd);
  text.resize(size);
  return text;
}

// The name in the stat may contain any character, even ')'.
bool read_stat(pid_t pid, Seen& seen) {
  const std::string stat = read_proc(pid, "stat", 4096);
  const size_t begin = stat.find('('), end = stat.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return false;
  seen.name = stat.substr(begin + 1, end - begin - 1);
  int parent = 0, group = 0, session = 0;
  const char* const format = " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu";
  if (std::sscanf(stat.c_str() + end + 1, format, &seen.state, &parent, &group, &session, &seen.began) != 5)
    return false;
  seen.parent = parent;
  seen.session = session;
  return true;
}

std::map<pid_t, Seen> all_processes() {
  std::map<pid_t, Seen> all;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return all;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    Seen seen;
    if (pid > 0 && read_stat(pid, seen)) all.emplace(pid, std::move(seen));
  }
  closedir(proc);
  return all;
}

// Kernel threads have no program, and processes of other users do not show theirs.
bool shows_a_program(pid_t pid) {
  char target;
  return readlink(fmt::format("/proc/{}/exe", pid).c_str(), &target, 1) > 0;
}

bool has_arguments(pid_t pid) { return !read_proc(pid, "cmdline", 1).empty(); }

// A process's user can read its first environment as long as it lives. Only while the process begins another program,
// its environment and arguments are empty for a moment; then it is read again.
std::string read_environment(pid_t pid) {
  constexpr size_t kMostBytes = size_t{4} << 20;  // more than a kernel takes
  constexpr int kMostLooks = 100;                 // a busy machine may delay the process at that moment
  std::string environment = read_proc(pid, "environ", kMostBytes);
  for (int look = 0; environment.empty() && look < kMostLooks && shows_a_program(pid); ++look) {
    const bool had_arguments = has_arguments(pid);
    environment = read_proc(pid, "environ", kMostBytes);
    if (!environment.empty() || (had_arguments && has_arguments(pid))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return environment;
}

bool holds_variable(pid_t pid, const std::string& variable) {
  return ('\0' + read_environment(pid) + '\0').find(variable) != std::string::npos;
}

std::string resolved(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::weakly_canonical(path, error);
  return (error ? path : found).string();
}

bool is_dead(const Seen& seen) { return seen.state == 'Z' || seen.state == 'X'; }

// Whether a process is a child that this process did not start: its parents are dead, and so is the nearest subreaper.
bool is_inherited(pid_t pid, const Seen& seen) {
  return seen.parent == getpid() && seen.session != getsid(0) && !Subprocess::is_own(pid);
}

}  // namespace

std::string trial_mark(const std::filesystem::path& trial_dir, uint32_t attempt) {
  return fmt::format("{}#{}", resolved(trial_dir), attempt);
}

TrialProcesses::TrialProcesses(const std::filesystem::path& trial_dir, uint32_t attempt, pid_t launcher)
    : variable_('\0' + fmt::format("{}={}", kMarkVariable, trial_mark(trial_dir, attempt)) + '\0'),
      launcher_(launcher) {
  Seen seen;
  if (launcher_ > 0 && read_stat(launcher_, seen)) began_ = seen.began;
}

TrialProcesses TrialProcesses::of_study(const std::filesystem::path& run_dir) {
  TrialProcesses all;
  all.variable_ = '\0' + fmt::format("{}={}/", kMarkVariable, resolved(run_dir / "trials"));
  return all;
}

std::vector<pid_t> TrialProcesses::alive() const {
  const std::map<pid_t, Seen> all = all_processes();
  const auto launcher = all.find(launcher_);
  const bool has_lost_launcher = launcher_ > 0 && (launcher == all.end() || is_dead(launcher->second));
  std::set<pid_t> own;
  for (const auto& [pid, seen] : all) {
    if (pid == getpid() || is_dead(seen)) continue;
    const bool inherited = has_lost_launcher && seen.began >= began_ && is_inherited(pid, seen);
    if (inherited || (launcher_ > 0 && seen.session == launcher_) || holds_variable(pid, variable_)) own.insert(pid);
  }
  for (size_t before = own.size() + 1; before != own.size();) {
    before = own.size();
    for (const auto& [pid, seen] : all) {
      if (pid != getpid() && !is_dead(seen) && own.count(seen.parent) != 0) own.insert(pid);
    }
  }
  return {own.begin(), own.end()};
}

std::vector<pid_t> TrialProcesses::kill_all() {
  std::vector<pid_t> found = alive();
  for (const pid_t pid : found) {
    kill(pid, SIGKILL);
    kill(pid, SIGCONT);  // a traced process may be stopped at its end
    if (pid != launcher_) killed_.insert(pid);
  }
  for (auto it = killed_.begin(); it != killed_.end();) {
    it = waitpid(*it, nullptr, WNOHANG) > 0 ? killed_.erase(it) : std::next(it);
  }
  return found;
}

std::vector<pid_t> TrialProcesses::end_all(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    std::vector<pid_t> left = kill_all();
    if (left.empty() || std::chrono::steady_clock::now() >= end) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Reaped end_processes_of_study(const std::filesystem::path& run_dir, std::chrono::milliseconds patience) {
  TrialProcesses all = TrialProcesses::of_study(run_dir);
  const auto end = std::chrono::steady_clock::now() + patience;
  std::set<pid_t> seen;
  for (;;) {
    const std::vector<pid_t> left = all.kill_all();
    seen.insert(left.begin(), left.end());
    if (left.empty() || std::chrono::steady_clock::now() >= end) return {seen.size() - left.size(), left};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string describe_processes(const std::vector<pid_t>& processes) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, processes.size()); ++i) {
    Seen seen;
    if (!read_stat(processes[i], seen)) continue;
    text += fmt::format("{}{} ({}, state {})", text.empty() ? "" : ", ", processes[i], printable_line(seen.name),
                        seen.state);
  }
  if (processes.size() > kShown) text += fmt::format(" and {} more", processes.size() - kShown);
  return text;
}

Subreaper::Subreaper() {
  prctl(PR_GET_CHILD_SUBREAPER, &before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Subreaper::~Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, before_); }

}  // namespace dsat::host
