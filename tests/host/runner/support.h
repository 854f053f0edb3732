// What the tests of the process side share: a loop that runs until something holds, and a look at processes.
#ifndef DSAT_TESTS_HOST_RUNNER_SUPPORT_H_
#define DSAT_TESTS_HOST_RUNNER_SUPPORT_H_

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <string>

#include "base/event_loop.h"
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

// A process that is there and no zombie.
inline bool is_alive(pid_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.size() > name_end + 2 && stat[name_end + 2] != 'Z';
}

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_RUNNER_SUPPORT_H_
