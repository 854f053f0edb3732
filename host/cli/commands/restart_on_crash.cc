// Forks for each attempt, passes signals on to the child, and decides by the child's end whether to resume the study. A
// signal between two attempts stays pending, and then there is no further attempt. The child makes the run directory
// and sends its path through a pipe.
#include "commands/restart_on_crash.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "dsat/base/shell.h"
#include "dsat/host/record.h"
#include "terminal/exit_status.h"
#include "terminal/failure.h"
#include "terminal/held_signals.h"

namespace dsat::cli {
namespace {

constexpr std::initializer_list<int> kPassedOn{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

// How a child ended: its exit status, or the signal that killed it.
struct ChildEnd {
  int status = 0;
  int signal = 0;
  // A user who sends a signal before the study can handle it wants the program to end.
  bool was_asked_for() const { return std::find(kPassedOn.begin(), kPassedOn.end(), signal) != kPassedOn.end(); }
  bool wants_restart() const { return (signal != 0 && !was_asked_for()) || status == kFailed; }
  std::string text() const {
    return signal != 0 ? fmt::format("was killed by signal {}", strsignal(signal)) : "failed";
  }
};

// The errno of standard output in a child, in shared memory. A failed output is not part of the child's status, because
// the search itself has not failed.
class OutputError {
 public:
  OutputError() {
    void* shared = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared != MAP_FAILED) error_ = static_cast<int*>(shared);
  }
  ~OutputError() {
    if (error_ != nullptr) munmap(error_, sizeof(int));
  }
  OutputError(const OutputError&) = delete;
  OutputError& operator=(const OutputError&) = delete;
  // Called in the child.
  void tell(int error) const {
    if (error_ != nullptr && error != 0) *error_ = error;
  }
  int error() const { return error_ != nullptr ? *error_ : 0; }

 private:
  int* error_ = nullptr;
};

// The machine-readable output (--json) of the last child. The output of earlier attempts is dropped, because a program
// expects one object.
class Data {
 public:
  explicit Data(Console& console) : console_(console), file_(console.json() ? memfd_create("data", MFD_CLOEXEC) : -1) {}
  ~Data() {
    if (file_ >= 0) close(file_);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  // Called in the child.
  void keep() const {
    if (file_ >= 0 && ftruncate(file_, 0) == 0 && lseek(file_, 0, SEEK_SET) == 0) console_.redirect_data(file_);
  }
  void print() const {
    std::string text;
    std::array<char, 4096> part{};
    ssize_t size = 0;
    while (file_ >= 0 && (size = pread(file_, part.data(), part.size(), static_cast<off_t>(text.size()))) > 0) {
      text.append(part.data(), static_cast<size_t>(size));
    }
    if (!text.empty()) console_.data(text);
  }

 private:
  Console& console_;
  int file_;
};

struct Shared {
  const HeldSignals& signals;
  const Data& data;
  const OutputError& output;
};

// Unblocks the signals: until the child has its own handlers, a signal ends the child.
[[noreturn]] void be_the_child(const std::function<int()>& run, pid_t parent, const Shared& shared, Console& console) {
  setpgid(0, 0);
  shared.signals.let_go();
  shared.data.keep();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);
  const int status = guarded(console, run);
  shared.output.tell(console.output_error());
  _exit(status);
}

// Ctrl-Z has stopped the child, and the shell waits until this program stops, too.
void stop_and_continue_with(pid_t pid) {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  kill(pid, SIGCONT);
}

// The status of the child's end; nullopt: waiting failed.
std::optional<int> wait_for(pid_t pid, const HeldSignals& signals) {
  for (;;) {
    const auto status = signals.until_change_of(pid, WUNTRACED, [pid](int signal) { kill(pid, signal); });
    if (!status || !WIFSTOPPED(*status)) return status;
    if (WSTOPSIG(*status) == SIGTSTP) stop_and_continue_with(pid);
  }
}

std::optional<ChildEnd> run_in_child(const std::function<int()>& run, const Shared& shared, Console& console) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) be_the_child(run, parent, shared, console);
  setpgid(pid, pid);
  const std::optional<int> ended = wait_for(pid, shared.signals);
  if (!ended) return std::nullopt;
  const int status = *ended;
  ChildEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.status = WEXITSTATUS(status);
  }
  return end;
}

// Passes the path of the run directory through a pipe. The parent reads the path when the child has ended.
class Announcement {
 public:
  Announcement() {
    if (pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  }
  ~Announcement() {
    for (const int fd : ends_) {
      if (fd >= 0) close(fd);
    }
  }
  void make(const std::filesystem::path& dir) const {
    const std::string text = dir.string();
    if (write(ends_[1], text.data(), text.size()) < 0) return;  // without the path, nothing is resumed
  }
  std::filesystem::path read() {
    close(ends_[1]);
    ends_[1] = -1;
    std::array<char, 4096> text{};
    const ssize_t size = ::read(ends_[0], text.data(), text.size());
    return size > 0 ? std::filesystem::path(std::string(text.data(), static_cast<size_t>(size)))
                    : std::filesystem::path();
  }

 private:
  int ends_[2] = {-1, -1};
};

bool has_journal(const std::filesystem::path& dir) {
  std::error_code error;
  return !dir.empty() && std::filesystem::exists(dir / "dsat.db", error);
}

int ended_trials(const std::filesystem::path& dir) {
  const auto record = host::read_study(dir);
  int ended = 0;
  if (!record.ok()) return 0;
  for (const host::TrialRecord& trial : record->trials) ended += trial.outcome ? 1 : 0;
  return ended;
}

}  // namespace

int supervise(const Supervised& study, int max_restarts, std::filesystem::path& dir, Console& console) {
  const HeldSignals signals(kPassedOn);
  const Data data(console);
  const OutputError output;
  const Shared shared{signals, data, output};
  Announcement announcement;
  std::optional<ChildEnd> end = run_in_child(
      [&] { return study.begin([&](const std::filesystem::path& dir) { announcement.make(dir); }); }, shared, console);
  dir = announcement.read();
  int last_seen = -1;
  for (int restart = 1; end && end->wants_restart() && has_journal(dir); ++restart) {
    const int seen = ended_trials(dir);
    if (restart > max_restarts || seen == last_seen) break;
    last_seen = seen;
    console.error(fmt::format("the search {}: it is resumed (restart {} of {}, --max-search-runner-restarts)",
                              end->text(), restart, max_restarts));
    if (signals.has_one_that_ends()) break;
    end = run_in_child([&] { return study.resume(dir); }, shared, console);
  }
  data.print();
  console.take_output_error(output.error());
  if (!end) {
    console.error(fmt::format("cannot run the search in a process of its own: {}", std::strerror(errno)));
    return kFailed;
  }
  signals.let_go();
  if (end->signal == 0) return end->status;
  if (end->was_asked_for()) raise(end->signal);
  const std::string how =
      dir.empty() ? ""
                  : fmt::format("; go on with dsat-host resume {}{}", shell_quote(dir.string()), study.resume_options);
  console.error(fmt::format("the search {}{}", end->text(), how));
  return kFailed;
}

}  // namespace dsat::cli
