// Reads /proc: the environment that a process was started with stays readable for its user as long as it lives.
#include "runner/orphans.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>

#include "dsat/base/files.h"
#include "dsat/base/numbers.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEnvironment = size_t{4} << 20;

bool is_marked(const fs::path& process, const std::string& mark) {
  const FileText text = try_read_file(process / "environ", kMostEnvironment);  // empty for a zombie
  return text.ok() && ('\0' + text.bytes).find(mark) != std::string::npos;
}

}  // namespace

std::vector<pid_t> processes_of_study(const fs::path& run_dir) {
  const std::string mark = '\0' + std::string(kStudyVariable) + "=" + run_dir.string() + '\0';
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const auto pid = parse_integer(it->path().filename().string(), 1, int64_t{1} << 30);
    if (pid && *pid != getpid() && is_marked(it->path(), mark)) found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

Reaped reap_orphans(const fs::path& run_dir, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::set<pid_t> killed;
  Reaped reaped;
  while (true) {
    reaped.are_left = processes_of_study(run_dir);
    for (const pid_t pid : reaped.are_left) {
      if (kill(pid, SIGKILL) == 0) killed.insert(pid);
    }
    if (reaped.are_left.empty() || std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  reaped.ended = killed.size() - std::min(killed.size(), reaped.are_left.size());
  return reaped;
}

}  // namespace dsat::host
