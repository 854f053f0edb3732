// What the tests of the process side share: a folder of their own, a loop that runs until something holds, and files.
#ifndef DSAT_TESTS_HOST_RUNNER_SUPPORT_H_
#define DSAT_TESTS_HOST_RUNNER_SUPPORT_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "base/event_loop.h"

namespace dsat::host {

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_program(const std::filesystem::path& file, const std::string& text) {
  write_text(file, text);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

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

class TempDirTest : public ::testing::Test {
 protected:
  TempDirTest() {
    std::string name = (std::filesystem::temp_directory_path() / "dsat-test-XXXXXX").string();
    dir_ = std::filesystem::canonical(mkdtemp(name.data()));
  }
  ~TempDirTest() override {
    std::error_code error;
    std::filesystem::remove_all(dir_, error);
  }
  const std::filesystem::path& dir() const { return dir_; }

 private:
  std::filesystem::path dir_;
};

}  // namespace dsat::host

#endif  // DSAT_TESTS_HOST_RUNNER_SUPPORT_H_
