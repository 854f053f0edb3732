// A child process with a session of its own, watched by the loop.
//
// Threading: control thread; spawn too, since a launcher's parent-death signal follows the thread that spawned it.
// Ownership: a Subprocess owns its child: destroying it kills and reaps the child that still runs (the child alone, not
//   what that has started: this is what dsat-launch is for).
// Why not Boost.Process or system(): no exit handlers or locks in the child, no pipe to wait for that a grandchild
// holds.
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
  int signal = 0;  // 0: ended by itself
};

struct SpawnOptions {
  std::vector<std::string> argv;         // argv[0] is a path: PATH is not searched
  std::vector<std::string> environment;  // all of it: "NAME=value"
  std::filesystem::path cwd;             // empty: this process's
  // Created for their owner alone, and emptied; absolute, or relative to this process's folder. Empty: /dev/null. stdin
  // is always /dev/null.
  std::filesystem::path stdout_file, stderr_file;
  int stdout_fd = -1;  // instead of stdout_file; stays the caller's
  int stderr_fd = -1;  // the same for stderr_file
  int keep_fd = -1;    // the one further descriptor that the child gets, as number 3; stays the caller's
};

// The system has no process or memory to spare now (EAGAIN, ENOMEM): later it may.
class SpawnBusy : public Error {
 public:
  using Error::Error;
};

// Throws where this process ignores SIGCHLD: the system then forgets how a child has ended.
void check_ends_can_be_seen();

class Subprocess {
 public:
  using OnExit = std::function<void(const ExitStatus&)>;

  // `on_exit` comes once, from the loop; it may destroy the Subprocess. Throws Error with the system's reason: the
  // program cannot be executed, or a file not be opened; SpawnBusy.
  static std::unique_ptr<Subprocess> spawn(Loop& loop, const SpawnOptions& options, OnExit on_exit);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  // Is it a child that this class has started and not reaped? Any thread may ask.
  static bool is_own(pid_t pid);

  pid_t pid() const { return pid_; }
  bool running() const { return pidfd_ >= 0; }

  // To the child itself, through its pidfd: never to another process that got its number.
  void signal(int number);

  // For poll(): becomes readable when it ends; -1: it is reaped.
  int exit_fd() const { return pidfd_; }

  // Has it ended, though on_exit may still be to come?
  bool has_ended() const;

  // Continues it if it is stopped; true: it was.
  bool wake_if_stopped();

  // Gives it up: on_exit does not come, and the destructor neither kills it nor waits for it. wait_for still works.
  void forget();

  // Waits at most `timeout` without the loop; true: it has ended (and on_exit will not come).
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
