// Where a process begins to look for ports.
#include "dsat/base/ports.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace dsat {
namespace {

// Does the system let this user make containers?
bool makes_containers() {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0 ? 0 : 1);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

// A process that is number 1 of a container, and lives until this is destroyed.
class InAContainer {
 public:
  InAContainer() {
    if (pipe2(answer_, O_CLOEXEC) != 0 || pipe2(over_, O_CLOEXEC) != 0) return;
    outside_ = fork();
    if (outside_ == 0) run();
    close(answer_[1]);
    close(over_[0]);
  }
  ~InAContainer() {
    close(over_[1]);
    close(answer_[0]);
    waitpid(outside_, nullptr, 0);
  }

  // nullopt where the process did not come to its answer.
  std::optional<uint16_t> first_port() {
    uint16_t port = 0;
    return read(answer_[0], &port, sizeof port) == sizeof port ? std::optional(port) : std::nullopt;
  }

 private:
  [[noreturn]] void run() {
    close(over_[1]);
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(1);
    if (fork() == 0) {
      const uint16_t port = first_port_of_process();
      if (getpid() != 1 || write(answer_[1], &port, sizeof port) != sizeof port) _exit(1);
      char nothing = 0;
      _exit(read(over_[0], &nothing, 1) == 0 ? 0 : 1);
    }
    close(answer_[1]);
    wait(nullptr);
    _exit(0);
  }

  int answer_[2] = {-1, -1}, over_[2] = {-1, -1};
  pid_t outside_ = -1;
};

TEST(FirstPort, LiesInTheRangeAndStaysTheSame) {
  EXPECT_GE(first_port_of_process(), kFirstPort);
  EXPECT_LE(first_port_of_process(), kLastPort);
  EXPECT_EQ(first_port_of_process(), first_port_of_process());
}

// Both may look at a port before either listens there.
TEST(FirstPort, DiffersInContainersThatShareANetwork) {
  if (!makes_containers()) GTEST_SKIP() << "this user may make no containers";
  InAContainer one, other;
  const auto first = one.first_port(), second = other.first_port();
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
}

}  // namespace
}  // namespace dsat
