// Forks the ranks, reads their signs of life and reports through a pipe each, and ends all of them on the first
// failure. A rank that only lost a peer waits for a short time: the peer's own report is the cause that is shown.
// The end of a rank is that of its process, not of its pipe: programs that it has started may hold the pipe open.
#include "ranks/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "comm/shared_region.h"
#include "dsat/error.h"
#include "watch/heartbeat.h"
#include "watch/last_words.h"
#include "watch/rank_watch.h"

namespace dsat::trainer {
namespace {

using Clock = std::chrono::steady_clock;

// How long the launcher waits, when a rank has lost a peer, for that peer's own report.
constexpr std::chrono::milliseconds kCauseGrace{3000};
// Between two lines about the ranks that have not ended after SIGTERM.
constexpr std::chrono::seconds kBetweenLines{5};

[[noreturn]] void fail(const char* what) {
  throw Error(DSAT_INTERNAL, fmt::format("{}: {}", what, std::strerror(errno)));
}

struct Child {
  int rank = 0;
  pid_t pid = -1;
  int pipe = -1;       // its signs of life and its report; -1: closed
  int end = -1;        // becomes readable when the process ends; -1: this kernel has no such thing
  std::string unread;  // of a line that has not ended
  std::string report;  // kind, then message
  bool running() const { return pid > 0; }
};

// A descriptor that becomes readable when this child's process ends. Where the kernel has none (before Linux 5.3) an
// end is seen when the launcher looks for it, twice a second.
int end_of(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// What a rank's process does: never returns, and skips destructors of a library that other ranks may still talk to.
[[noreturn]] void be_rank(int rank, int report_fd, pid_t parent, const std::function<RankResult(int)>& body) {
  // The parent may have gone before this took effect.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
  const RankResult result = [&] {
    set_last_words(report_fd, std::string(1, static_cast<char>(FailureKind::error)));
    const Heartbeat heartbeat(report_fd);
    return body(rank);
  }();
  std::fflush(nullptr);
  // A success is reported, too: something else may end a process with status 0. Short enough for one atomic write; a
  // parent that is gone needs no report.
  const std::string report = (static_cast<char>(result.kind) + result.message).substr(0, 4000) + "\n";
  if (::write(report_fd, report.data(), report.size()) < 0) ::_exit(1);
  ::_exit(result.kind == FailureKind::none ? 0 : 1);
}

// Hands SIGTERM on to the ranks. A signal's handler may use no more than this.
class Forwarding {
 public:
  static void begin(const std::vector<Child>& children) {
    count_ = std::min(children.size(), kMost);
    for (size_t i = 0; i < count_; ++i) ranks_[i] = children[i].pid;
    struct sigaction action {};
    action.sa_handler = [](int signal) {
      signalled_ = signalled_ + 1;
      for (size_t i = 0; i < count_; ++i) {
        if (ranks_[i] > 0) ::kill(ranks_[i], signal);
      }
    };
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGTERM, &action, nullptr);
  }
  // Its number may be another process's from now on.
  static void forget(pid_t pid) { std::replace(ranks_, ranks_ + kMost, pid, pid_t{0}); }
  static int signalled() { return signalled_; }

 private:
  static constexpr size_t kMost = 1024;
  static inline pid_t ranks_[kMost];
  static inline size_t count_ = 0;
  static inline volatile std::sig_atomic_t signalled_ = 0;
};

class Launch {
 public:
  Launch(int ranks, const LaunchOptions& options) : ranks_(ranks), options_(options), region_(ranks) {}
  ~Launch() {
    kill_all();
    for (Child& child : children_) {
      if (child.running()) reap(child);
    }
  }

  void start(const std::function<RankResult(int)>& body) {
    std::fflush(nullptr);  // or children would print the buffer again
    const pid_t parent = ::getpid();
    for (int rank = 0; rank < ranks_; ++rank) {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
      const pid_t pid = ::fork();
      if (pid < 0) fail("fork");
      if (pid == 0) {
        for (Child& sibling : children_) {
          close_fd(sibling.pipe);
          close_fd(sibling.end);
        }
        be_rank(rank, ends[1], parent, body);
      }
      ::close(ends[1]);
      ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
      children_.push_back({rank, pid, ends[0], end_of(pid), {}, {}});
      watch_.started(rank, Clock::now());
    }
    Forwarding::begin(children_);
  }

  RankResult wait() {
    while (wait_for_reports()) {
      if (!killed_) {
        if (const auto wrong = watch_.verdict(Clock::now())) note({FailureKind::error, *wrong});
      }
      if (Forwarding::signalled() > 0) wait_for_stop();
      if (cause_.kind == FailureKind::none) continue;
      // The cause is known, or does not come: the rest only waits for something that is gone.
      if (cause_.kind != FailureKind::peer_lost || Clock::now() >= deadline_) kill_all();
    }
    return cause_;
  }

 private:
  // Handles what has come from the children; false: all have ended.
  bool wait_for_reports() {
    std::vector<pollfd> fds;  // poll() leaves out those that are -1
    for (const Child& child : children_) {
      if (!child.running()) continue;
      fds.push_back({child.pipe, POLLIN, 0});
      fds.push_back({child.end, POLLIN, 0});
    }
    if (fds.empty()) return false;
    if (::poll(fds.data(), fds.size(), timeout_ms()) < 0 && errno != EINTR) fail("poll");
    for (Child& child : children_) {
      if (child.running()) look_at(child);
    }
    return true;
  }

  // A process that has ended writes nothing more, so what is in the pipe then is all of it.
  void look_at(Child& child) {
    int status = 0;
    const bool ended = ::waitpid(child.pid, &status, WNOHANG) != 0;  // also where the system has reaped it already
    read_all(child);
    if (!ended) return;
    forget(child);
    conclude(child, status);
  }

  int timeout_ms() const {
    std::chrono::milliseconds left = kBeatInterval;
    if (!killed_ && cause_.kind == FailureKind::peer_lost) {
      left = std::min(left, std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()));
    }
    return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count() + 1, 0));
  }

  // What has come through the pipe, without waiting for more.
  void read_all(Child& child) {
    char buffer[4096];
    ssize_t n = 0;
    while (child.pipe >= 0 && (n = ::read(child.pipe, buffer, sizeof buffer)) > 0) {
      child.unread.append(buffer, static_cast<size_t>(n));
      read_lines(child);
    }
    const bool is_open = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (!is_open) close_fd(child.pipe);
  }

  void read_lines(Child& child) {
    for (size_t end; (end = child.unread.find('\n')) != std::string::npos; child.unread.erase(0, end + 1)) {
      const std::string line = child.unread.substr(0, end);
      if (const auto beat = parse_beat(line)) {
        watch_.receive(child.rank, *beat, Clock::now());
      } else {
        child.report = line;
      }
    }
  }

  void reap(Child& child) {
    while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    forget(child);
  }

  // Its process has ended, and its number may be another's.
  void forget(Child& child) {
    Forwarding::forget(child.pid);
    child.pid = -1;
    close_fd(child.pipe);
    close_fd(child.end);
    region_.set_ended(child.rank);
    watch_.ended(child.rank);
  }

  void conclude(const Child& child, int status) {
    if (killed_) return;  // its end is our doing
    const std::string who = fmt::format("rank {}", child.rank);
    const auto kind = child.report.empty() ? FailureKind::none : static_cast<FailureKind>(child.report[0]);
    if (kind != FailureKind::none) {
      note({kind, child.report.substr(1)});
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM && Forwarding::signalled() > 0) {
      end_as_asked();
    } else if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      note({FailureKind::error, fmt::format("{} was killed by signal {} ({}){}", who, signal, strsignal(signal),
                                            signal == SIGKILL ? ", perhaps for want of memory" : "")});
    } else if (WEXITSTATUS(status) != 0) {
      note({FailureKind::error, fmt::format("{} ended with status {}", who, WEXITSTATUS(status))});
    } else if (child.report.empty()) {
      note({FailureKind::error, fmt::format("{} ended with status 0 in the middle of its training: something in it "
                                            "called exit(); let the training return instead",
                                            who)});
    }
  }

  // After SIGTERM: ranks finish their step and save. One that computes for ever would never end, and who sends a second
  // signal does not want to wait.
  void wait_for_stop() {
    const Clock::time_point now = Clock::now();
    if (!stop_began_) stop_began_ = line_at_ = now;
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - *stop_began_);
    const bool is_over = waited >= options_.stop_grace || Forwarding::signalled() > 1;
    if (!is_over && now - line_at_ < kBetweenLines) return;
    line_at_ = now;
    std::fputs(fmt::format("{}: SIGTERM: {} for {} s\n", options_.program,
                           fmt::format(is_over ? "ending all ranks after waiting for {}" : "waiting for {}",
                                       names_of(watch_.computing())),
                           waited.count())
                   .c_str(),
               stderr);
    if (!is_over) return;
    kill_all();
    end_as_asked();
  }

  static std::string names_of(const std::vector<int>& ranks) {
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
  }

  // The signal that was handed on is this process's own.
  [[noreturn]] static void end_as_asked() {
    std::signal(SIGTERM, SIG_DFL);
    ::raise(SIGTERM);
    std::abort();
  }

  // Keeps the first failure that is a rank's own; one that only lost a peer gives way to it.
  void note(RankResult failure) {
    const bool replaces = cause_.kind == FailureKind::none ||
                          (cause_.kind == FailureKind::peer_lost && failure.kind != FailureKind::peer_lost);
    if (cause_.kind == FailureKind::none) deadline_ = Clock::now() + kCauseGrace;
    if (replaces) cause_ = std::move(failure);
  }

  void kill_all() {
    killed_ = true;
    for (const Child& child : children_) {
      if (child.running()) ::kill(child.pid, SIGKILL);
    }
  }

  int ranks_;
  LaunchOptions options_;
  std::optional<Clock::time_point> stop_began_;
  Clock::time_point line_at_;
  SharedRegion region_;
  std::vector<Child> children_;
  RankWatch watch_;
  RankResult cause_;
  Clock::time_point deadline_;
  bool killed_ = false;
};

}  // namespace

RankResult launch(int ranks, const std::function<RankResult(int)>& body, const LaunchOptions& options) {
  Launch launch(ranks, options);
  launch.start(body);
  return launch.wait();
}

}  // namespace dsat::trainer
