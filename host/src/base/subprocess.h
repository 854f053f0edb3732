// A child process with its own session, watched by the loop.
// Threading: control thread; spawn too, since a launcher's parent-death signal is tied to the thread that spawned it.
// Ownership: the destructor kills and reaps a running child, but not the child's own children (dsat-launch does that).
// Boost.Process and system() are not used: they run exit handlers or locks in the child, and wait for pipes that a
// grandchild may hold.
#ifndef DSAT_HOST_BASE_SUBPROCESS_H_
#define DSAT_HOST_BASE_SUBPROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "dsat/error.h"

namespace dsat::host {

struct ExitStatus {
  int code = -1;   // -1: ended by a signal, or unknown (the process ignores SIGCHLD)
  int signal = 0;  // 0: not ended by a signal
};

struct SpawnOptions {
  std::vector<std::string> argv;         // argv[0] is a path; PATH is not searched
  std::vector<std::string> environment;  // all of it: "NAME=value"
  std::filesystem::path cwd;             // empty: that of this process
  // Created with access only for their owner, and emptied; absolute, or relative to this process's folder. Empty:
  // /dev/null. stdin is always /dev/null.
  std::filesystem::path stdout_file, stderr_file;
  int stdout_fd = -1;  // instead of stdout_file; stays the caller's
  int stderr_fd = -1;  // instead of stderr_file; stays the caller's
  int keep_fd = -1;    // passed to the child as descriptor 3; stays the caller's
};

// The system has no process or memory to spare now (EAGAIN, ENOMEM), but may have some later.
class SpawnBusy : public Error {
 public:
  using Error::Error;
};

// Throws if this process ignores SIGCHLD, because then the system does not keep how a child has ended.
void check_ends_can_be_seen();

class Subprocess {
 public:
  using OnExit = std::function<void(const ExitStatus&)>;

  // Calls `on_exit` once from the loop; it may destroy the Subprocess. Throws Error with the system's reason if the
  // program cannot be executed or a file cannot be opened; throws SpawnBusy.
  static std::unique_ptr<Subprocess> spawn(Loop& loop, const SpawnOptions& options, OnExit on_exit);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  // Whether this class has started the process and not reaped it. Any thread may call this.
  static bool is_own(pid_t pid);

  pid_t pid() const { return pid_; }
  bool running() const { return pidfd_ >= 0; }

  // Signals the child through its pidfd, so never another process with the same number.
  void signal(int number);

  // For poll(): becomes readable at the child's end; -1: the child is reaped.
  int exit_fd() const { return pidfd_; }

  // Whether the child has ended, even if on_exit was not called yet.
  bool has_ended() const;

  // Continues the child if it is stopped; returns whether it was.
  bool wake_if_stopped();

  // Gives up the child: on_exit is not called, and the destructor neither kills it nor waits for it. wait_for still
  // works.
  void forget();

  // Waits at most `timeout` without the loop. Returns true if the child has ended; then on_exit is not called.
  bool wait_for(std::chrono::milliseconds timeout);

 private:
  Subprocess(Loop& loop, pid_t pid, int pidfd, OnExit on_exit);
  ExitStatus reap();
  void handle_exit();

  Loop& loop_;
  pid_t pid_;
  int pidfd_;
  bool forgotten_ = false;
  OnExit on_exit_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_SUBPROCESS_H_
