// posix_spawn starts a child, so none of this program's handlers run in it. The child is watched by its pidfd, which
// cannot mean another process, unlike its number. Its calls are made by number: glibc has them from 2.36 on, and Linux
// before.
#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "base/guarded.h"

namespace dsat::host {

namespace {

// The two argument objects of posix_spawn, freed together. The first error of any call is kept.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // The child gets none of the host's signal handling, terminal or descriptors.
  void isolate() {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    check(posix_spawnattr_setsigmask(&attributes_, &none));
    check(posix_spawnattr_setsigdefault(&attributes_, &all));
    check(posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  void close_from(int fd) { check(posix_spawn_file_actions_addclosefrom_np(&actions_, fd)); }
  void read_nothing() { check(posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0)); }
  void write_to(int fd, const std::filesystem::path& file) {
    const char* name = file.empty() ? "/dev/null" : file.c_str();
    check(posix_spawn_file_actions_addopen(&actions_, fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  }
  void duplicate(int from, int to) { check(posix_spawn_file_actions_adddup2(&actions_, from, to)); }
  void change_folder(const std::filesystem::path& folder) {
    if (!folder.empty()) check(posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()));
  }

  int spawn(pid_t* pid, char* const* argv, char* const* environment) {
    return error_ != 0 ? error_ : posix_spawn(pid, argv[0], &actions_, &attributes_, argv, environment);
  }

 private:
  void check(int error) {
    if (error_ == 0) error_ = error;
  }
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
  int error_ = 0;
};

// The children of all loops of this program. A child is added before anybody can ask for it.
class OwnChildren {
 public:
  static OwnChildren& all() {
    static OwnChildren children;
    return children;
  }
  int spawn(SpawnPlan& plan, pid_t* pid, char* const* argv, char* const* environment) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const int error = plan.spawn(pid, argv, environment);
    if (error == 0) ids_.insert(*pid);
    return error;
  }
  void remove(pid_t pid) {
    const std::lock_guard<std::mutex> guard(mutex_);
    ids_.erase(pid);
  }
  bool has(pid_t pid) {
    const std::lock_guard<std::mutex> guard(mutex_);
    return ids_.count(pid) != 0;
  }

 private:
  std::mutex mutex_;
  std::set<pid_t> ids_;
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

void check_ends_can_be_seen() {
  struct sigaction action {};
  sigaction(SIGCHLD, nullptr, &action);
  if (action.sa_handler != SIG_IGN && (action.sa_flags & SA_NOCLDWAIT) == 0) return;
  throw Error("this process ignores SIGCHLD, so that the system forgets how its trials end; set SIGCHLD to SIG_DFL");
}

std::unique_ptr<Subprocess> Subprocess::spawn(Loop& loop, const SpawnOptions& options, OnExit on_exit) {
  SpawnPlan plan;
  plan.read_nothing();
  if (options.stdout_fd >= 0) {
    plan.duplicate(options.stdout_fd, STDOUT_FILENO);
  } else {
    plan.write_to(STDOUT_FILENO, options.stdout_file);
  }
  if (options.stderr_fd >= 0) {
    plan.duplicate(options.stderr_fd, STDERR_FILENO);
  } else {
    plan.write_to(STDERR_FILENO, options.stderr_file);
  }
  plan.isolate();
  if (options.keep_fd >= 0) plan.duplicate(options.keep_fd, STDERR_FILENO + 1);
  plan.close_from(options.keep_fd >= 0 ? STDERR_FILENO + 2 : STDERR_FILENO + 1);
  plan.change_folder(options.cwd);

  const std::vector<char*> argv = pointers(options.argv);
  const std::vector<char*> environment = pointers(options.environment);
  pid_t pid = -1;
  const int error = OwnChildren::all().spawn(plan, &pid, argv.data(), environment.data());
  if (error != 0) {
    const std::string folder = options.cwd.empty() ? std::string() : " in " + options.cwd.string();
    const std::string message = "cannot start " + options.argv[0] + folder + ": " + std::strerror(error);
    if (error == EAGAIN || error == ENOMEM) throw SpawnBusy(DSAT_INTERNAL, message);
    throw internal_error(message);
  }
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const int reason = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    OwnChildren::all().remove(pid);
    throw internal_error(std::string("cannot watch a child process (pidfd_open): ") + std::strerror(reason));
  }
  return std::unique_ptr<Subprocess>(new Subprocess(loop, pid, pidfd, std::move(on_exit)));
}

Subprocess::Subprocess(Loop& loop, pid_t pid, int pidfd, OnExit on_exit)
    : loop_(loop), pid_(pid), pidfd_(pidfd), on_exit_(std::move(on_exit)) {
  loop_.watch(pidfd_, [this] { handle_exit(); });
}

bool Subprocess::is_own(pid_t pid) { return OwnChildren::all().has(pid); }

Subprocess::~Subprocess() {
  if (!running()) return;
  if (forgotten_) {
    close(pidfd_);
    return;
  }
  signal(SIGKILL);
  reap();
}

void Subprocess::signal(int number) {
  if (running()) syscall(SYS_pidfd_send_signal, pidfd_, number, nullptr, 0);
}

bool Subprocess::has_ended() const {
  if (!running()) return true;
  pollfd asked{pidfd_, POLLIN, 0};
  return poll(&asked, 1, 0) > 0;
}

void Subprocess::forget() {
  if (!running()) return;
  loop_.unwatch(pidfd_);
  forgotten_ = true;
}

bool Subprocess::wake_if_stopped() {
  if (!running()) return false;
  siginfo_t info{};
  const auto kind = static_cast<idtype_t>(P_PIDFD);
  const int result = waitid(kind, static_cast<id_t>(pidfd_), &info, WSTOPPED | WNOHANG | WNOWAIT);
  if (result != 0 || info.si_pid == 0) return false;
  signal(SIGCONT);
  return true;
}

bool Subprocess::wait_for(std::chrono::milliseconds timeout) {
  if (!running()) return true;
  pollfd waited{pidfd_, POLLIN, 0};
  if (poll(&waited, 1, static_cast<int>(timeout.count())) <= 0) return false;
  reap();
  return true;
}

ExitStatus Subprocess::reap() {
  siginfo_t info{};
  int result = 0;
  do {
    result = waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_), &info, WEXITED);
  } while (result != 0 && errno == EINTR);
  loop_.unwatch(pidfd_);
  close(pidfd_);
  pidfd_ = -1;
  OwnChildren::all().remove(pid_);
  ExitStatus status;
  if (result == 0 && info.si_code == CLD_EXITED) status.code = info.si_status;
  if (result == 0 && info.si_code != CLD_EXITED) status.signal = info.si_status;
  return status;
}

void Subprocess::handle_exit() {
  const ExitStatus status = reap();
  const OnExit on_exit = std::move(on_exit_);
  on_exit(status);  // may destroy this object
}

}  // namespace dsat::host
