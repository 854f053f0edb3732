// What a rank knows of a peer's process, whenever that has ended.
// The peers are forks of this program, which name themselves through a pipe.
#include "watch/peer_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace dsat::trainer {
namespace {

class Fork {
 public:
  Fork() {
    int ends[2];
    if (::pipe(ends) != 0 || (pid_ = ::fork()) < 0) ::abort();
    if (pid_ == 0) {
      const std::string name = PeerProcess::own_name();
      if (::write(ends[1], name.data(), name.size()) < 0) ::_exit(1);
      for (;;) ::pause();
    }
    char name[256];
    name_.assign(name, static_cast<size_t>(std::max<ssize_t>(0, ::read(ends[0], name, sizeof name))));
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Fork() {
    end();
    wait();
  }
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;

  const std::string& name() const { return name_; }
  // When it returns it has ended, and its parent has not waited for it yet.
  void end() const {
    siginfo_t info;
    if (is_waited_for_) return;
    ::kill(pid_, SIGKILL);
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void wait() {
    if (!is_waited_for_) ::waitpid(pid_, nullptr, 0);
    is_waited_for_ = true;
  }

 private:
  pid_t pid_ = -1;
  std::string name_;
  bool is_waited_for_ = false;
};

TEST(PeerProcessTest, ItsEndIsSeen) {
  Fork fork;
  PeerProcess peer(fork.name());
  EXPECT_FALSE(peer.has_ended());
  peer.kill();
  fork.end();
  EXPECT_TRUE(peer.has_ended());
}

TEST(PeerProcessTest, OneThatEndedBeforeItWasLookedAtIsKnownToHave) {
  Fork fork;
  fork.end();
  EXPECT_TRUE(PeerProcess(fork.name()).has_ended());  // its parent has not waited for it
  fork.wait();
  PeerProcess peer;
  peer = PeerProcess(fork.name());
  EXPECT_TRUE(peer.has_ended());
  peer.kill();
}

TEST(PeerProcessTest, NothingIsKnownOfOthers) {
  Fork fork;
  const std::string pid = fork.name().substr(fork.name().rfind(' '));
  EXPECT_FALSE(PeerProcess().has_ended());
  fork.end();
  fork.wait();
  for (const std::string& name : {"another-boot/pid:[4026531836]" + pid, std::string("nonsense"), std::string()}) {
    EXPECT_FALSE(PeerProcess(name).has_ended()) << name;
  }
}

TEST(PeerProcessTest, AnotherProgramThatHasItsNumberIsLeftAlone) {
  Fork fork;
  const std::string host = fork.name().substr(0, fork.name().find(' '));
  const pid_t other = ::fork();
  if (other == 0) {
    ::execlp("sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  const std::string link = "/proc/" + std::to_string(other) + "/exe";
  char own[256], program[256];
  const ssize_t own_size = ::readlink("/proc/self/exe", own, sizeof own);
  ssize_t size;
  do {
    size = ::readlink(link.c_str(), program, sizeof program);
  } while (std::string(program, static_cast<size_t>(size)) == std::string(own, static_cast<size_t>(own_size)));
  PeerProcess peer(host + " " + std::to_string(other));
  peer.kill();
  EXPECT_FALSE(peer.has_ended());
  int status = 0;
  EXPECT_EQ(::waitpid(other, &status, WNOHANG), 0);
  ::kill(other, SIGTERM);
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace dsat::trainer
