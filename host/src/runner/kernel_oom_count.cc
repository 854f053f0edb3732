// Reads the kernel's oom_kill counter of this process's cgroup (version 2 or 1), or else that of the machine.
#include "runner/kernel_oom_count.h"

#include <fstream>
#include <string>

namespace dsat::host {

namespace {

// Returns the number after `key` at the start of a line ("oom_kill 3").
std::optional<uint64_t> read_counter(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  std::string name;
  uint64_t value = 0;
  while (in >> name >> value) {
    if (name == key) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> count_oom_kills() {
  // Lines are "ID:CONTROLLERS:PATH". Version 2 has no controllers, version 1 has "memory" among them.
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    std::optional<uint64_t> kills;
    if (controllers.empty()) kills = read_counter("/sys/fs/cgroup" + path + "/memory.events", "oom_kill");
    if (controllers == "memory")
      kills = read_counter("/sys/fs/cgroup/memory" + path + "/memory.oom_control", "oom_kill");
    if (kills) return kills;
  }
  return read_counter("/proc/vmstat", "oom_kill");
}

}  // namespace dsat::host
