// What the tests of the process side share: a loop that runs until something holds, and a look at processes.
#ifndef DSAT_TESTS_HOST_RUNNER_SUPPORT_H_
#define DSAT_TESTS_HOST_RUNNER_SUPPORT_H_

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "dsat/base/files.h"
#include "support/error_of.h"
#include "support/temp_dir.h"

namespace dsat::host {

// Runs the loop until `done` holds; a test that waits for what never comes fails rather than hangs.
inline void run_until(Loop& loop, const std::function<bool()>& done) {
  bool late = false;
  const uint64_t timer = loop.at(Loop::Clock::now() + std::chrono::seconds(60), [&] { late = true; });
  while (!done() && !late) loop.run_once();
  loop.cancel(timer);
  ASSERT_FALSE(late) << "waited in vain";
}

// Until something holds that makes no event, as files and processes of others: the loop looks again and again.
inline void look_until(Loop& loop, const std::function<bool()>& done) {
  run_until(loop, [&] {
    loop.at(Loop::Clock::now() + std::chrono::milliseconds(2), [] {});
    return done();
  });
}

// What follows the name in /proc/PID/stat: " S 1 ...", the state and the parent; empty: it is gone.
inline std::string state_of(const std::string& pid) {
  const std::string stat = try_read_file("/proc/" + pid + "/stat").bytes;
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? "" : stat.substr(name_end + 1);
}

// A process that is there and no zombie.
inline bool is_alive(pid_t pid) {
  const std::string state = state_of(std::to_string(pid));
  return state.size() > 1 && state[1] != 'Z';
}

// Processes whose parent that one is.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string state = state_of(pid);
    if (state.size() > 3 && std::stoi(state.substr(3)) == parent) found.push_back(std::stoi(pid));
  }
  return found;
}

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_RUNNER_SUPPORT_H_
