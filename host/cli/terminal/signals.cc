// A thread polls a signalfd, so no plugin can take the signals away with a handler or mask of its own. Handlers of
// crashes and of exit() only write one line and end the process.
#include "terminal/signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "dsat/host/plugin_calls.h"
#include "terminal/console.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::array kStops{SIGINT, SIGTERM, SIGHUP};
constexpr std::array kCrashes{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr milliseconds kSilence{30'000};  // a plugin that does not answer for so long is reported
// After a second signal the study has this long to kill its trials and record them. Then the process ends.
constexpr milliseconds kAfterTwo{500};
constexpr milliseconds kLook{1'000};

std::array<struct sigaction, kCrashes.size()> g_before;
std::atomic<bool> g_continued{false};
static_assert(std::atomic<bool>::is_always_lock_free, "written by a signal handler");
std::atomic<bool> g_watching{false};
pid_t g_program = 0;  // a child that a plugin forks inherits the handlers, but does not run the study
// The end of a handler's line: the folder of the study and the command that resumes it. It is written before a handler
// can read it. Without a study it is a line break.
std::array<char, 4096> g_kept{'\n'};

void put(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  (void)written;  // a failure cannot be reported
}

void note_continued(int) { g_continued = true; }

[[noreturn]] void end_with_a_line(const char* call, const char* how) {
  for (const char* part : std::array<const char*, 5>{"dsat-host: ", call, ": ", how, g_kept.data()}) put(part);
  _exit(kFailed);
}

const char* name_of_crash(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "it has crashed (segmentation fault, or its stack is used up)";
    case SIGBUS:
      return "it has crashed (bus error)";
    case SIGFPE:
      return "it has crashed (arithmetic error)";
    case SIGILL:
      return "it has crashed (illegal instruction)";
    default:
      return "it has called abort()";
  }
}

// A thread that a plugin has started is in no known call, so the line names no plugin. If a sanitizer handles the
// signal, its own report is better.
void on_crash(int signal) {
  const auto* at = std::find(kCrashes.begin(), kCrashes.end(), signal);
  const struct sigaction& before = g_before[static_cast<size_t>(at - kCrashes.begin())];
  const bool is_here = getpid() == g_program;
  const char* call = is_here ? host::plugin_call_of_this_thread() : nullptr;
  if (call == nullptr && is_here && g_watching && before.sa_handler == SIG_DFL) {
    call = "a thread of dsat-host or of a plugin";
  }
  if (call != nullptr) end_with_a_line(call, name_of_crash(signal));
  sigaction(signal, &before, nullptr);
  raise(signal);  // delivered when this handler has returned
}

// exit() runs this on the calling thread. The study itself never calls exit().
void on_exit() {
  if (getpid() != g_program) return;
  const char* call = host::plugin_call_of_this_thread();
  if (call == nullptr && !g_watching) return;
  end_with_a_line(call != nullptr ? call : "a plugin's thread", "it has called exit()");
}

void set_kept(const std::filesystem::path& dir, const std::string& resume_options) {
  const std::string text =
      dir.empty() ? std::string("\n")
                  : one_line(fmt::format("; the trials that ended and the best so far are kept in {}; go on with "
                                         "dsat-host resume DIR{}; if the searcher does that again, add "
                                         "--searcher guided",
                                         dir.string(), resume_options)) +
                        "\n";
  g_kept.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), g_kept.size() - 2), g_kept.begin());
}

void say(const std::string& line) { put(fmt::format("dsat-host: {}\n", one_line(line)).c_str()); }

double seconds(milliseconds time) { return static_cast<double>(time.count() / 100) / 10; }

}  // namespace

void add_unless_ignored(sigset_t& signals, int signal) {
  struct sigaction present {};
  sigaction(signal, nullptr, &present);
  if (present.sa_handler != SIG_IGN) sigaddset(&signals, signal);
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

void stop_ignoring_children() { std::signal(SIGCHLD, SIG_DFL); }

// This may be called again: a plugin that was loaded meanwhile may have replaced the signal handlers, and exit() runs
// the functions that were registered last first.
void name_plugins_that_crash() {
  g_program = getpid();
  std::atexit(on_exit);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    struct sigaction before {};
    sigaction(kCrashes[i], &action, &before);
    if (before.sa_handler != on_crash) g_before[i] = before;
  }
}

StudyWatch::StudyWatch(host::Study& study, std::string resume_options)
    : study_(study), resume_options_(std::move(resume_options)) {
  set_kept(study.dir(), resume_options_);
  g_watching = true;
  name_plugins_that_crash();
  sigemptyset(&watched_);
  for (const int signal : kStops) add_unless_ignored(watched_, signal);
  struct sigaction action {};
  action.sa_handler = note_continued;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGCONT, &action, &before_continue_);
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  signals_ = signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK);
  end_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { watch(); });
}

StudyWatch::~StudyWatch() {
  g_watching = false;
  const uint64_t one = 1;
  const ssize_t written = write(end_, &one, sizeof one);
  (void)written;
  thread_.join();
  close(signals_);
  close(end_);
  set_kept({}, "");
  sigaction(SIGCONT, &before_continue_, nullptr);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int StudyWatch::milliseconds_to_wait() const {
  if (asked_ < 2) return static_cast<int>(kLook.count());
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
  return static_cast<int>(std::clamp(left, milliseconds(0), milliseconds(100)).count());
}

void StudyWatch::watch() {
  std::array<pollfd, 2> fds{pollfd{signals_, POLLIN, 0}, pollfd{end_, POLLIN, 0}};
  while (true) {
    poll(fds.data(), fds.size(), milliseconds_to_wait());
    if (fds[1].revents != 0) return;
    if ((fds[0].revents & POLLIN) != 0) take_signal();
    look_at_plugins();
    end_if_overdue();
  }
}

void StudyWatch::take_signal() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    study_.request_stop();
    if (++asked_ == 2) deadline_ = Clock::now() + kAfterTwo;
    const auto call = host::oldest_plugin_call();
    if (asked_ == 1 && call && call->age > kLook) {
      say(fmt::format("{} has not answered for {} s; the same signal again ends dsat-host at once", call->text,
                      seconds(call->age)));
    }
  }
}

void StudyWatch::look_at_plugins() {
  const auto call = host::oldest_plugin_call();
  if (!call || call->age < kSilence) {
    reported_call_.clear();
  } else if (reported_call_ != call->text) {
    reported_call_ = call->text;
    say(fmt::format("{} has not answered for {} s", call->text, kSilence.count() / 1000));
  }
}

void StudyWatch::end_if_overdue() const {
  if (asked_ < 2 || Clock::now() < deadline_) return;
  const auto call = host::oldest_plugin_call();
  say(call ? fmt::format("interrupted; {} does not answer", call->text) : "interrupted; trials do not end");
  const auto dir = one_line(study_.dir().string());
  if (!dir.empty())
    say(fmt::format("the trials that ended are kept in {0}: dsat-host resume {0}{1}", dir, resume_options_));
  _exit(kInterrupted);
}

bool continued_since_last_asked() { return g_continued.exchange(false); }

}  // namespace dsat::cli
