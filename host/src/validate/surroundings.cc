#include "validate/surroundings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <clocale>
#include <filesystem>
#include <system_error>

#include "dsat/host/environment.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr int kSignals = 31;  // signals that programs receive; later ones belong to the C library

std::vector<fs::path> entries_of(const char* folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    found.push_back(it->path());
  }
  return found;
}

std::string umask_now() {
  const mode_t mask = umask(0);
  umask(mask);
  return fmt::format("{:o}", mask);
}

std::string mask_text() {
  sigset_t mask;
  sigemptyset(&mask);
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  std::string text;
  for (int number = 1; number <= kSignals; ++number) text += sigismember(&mask, number) == 1 ? '1' : '0';
  return text;
}

std::string handler_text(int number) {
  struct sigaction action {};
  if (sigaction(number, nullptr, &action) != 0) return "";
  return fmt::format("{}", reinterpret_cast<uintptr_t>(action.sa_handler));
}

}  // namespace

Surroundings Surroundings::now() {
  Surroundings found;
  std::error_code error;
  found.state["the current folder"] = fs::current_path(error).string();
  found.state["the locale"] = setlocale(LC_ALL, nullptr);
  found.state["the umask"] = umask_now();
  found.state["the rounding of numbers"] = std::to_string(fegetround());
  found.state["blocked signals"] = mask_text();
  found.state["environment variables"] = fmt::format("{}", fmt::join(current_environment(), "\n"));
  for (int number = 1; number <= kSignals; ++number) {
    found.state[fmt::format("what SIG{} does", sigabbrev_np(number) != nullptr ? sigabbrev_np(number) : "?")] =
        handler_text(number);
  }
  for (const fs::path& entry : entries_of("/proc/self/fd")) {
    const fs::path target = fs::read_symlink(entry, error);
    // The descriptor by which this list is read does not count.
    if (!error && target.filename() != "fd") found.descriptors[entry.filename().string()] = target.string();
  }
  found.threads = entries_of("/proc/self/task").size();
  return found;
}

std::string changes(const Surroundings& before, const Surroundings& after) {
  std::vector<std::string> found;
  for (const auto& [name, value] : before.state) {
    if (after.state.at(name) != value) found.push_back("changes " + name);
  }
  for (const auto& [number, target] : after.descriptors) {
    const auto known = before.descriptors.find(number);
    if (known == before.descriptors.end()) {
      found.push_back(fmt::format("leaves descriptor {} open ({})", number, target));
    } else if (known->second != target) {
      found.push_back(fmt::format("replaces descriptor {} by {}", number, target));
    }
  }
  for (const auto& [number, target] : before.descriptors) {
    if (after.descriptors.count(number) == 0) found.push_back(fmt::format("closes descriptor {}", number));
  }
  return fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace dsat::host
