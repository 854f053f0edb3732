// Signal handlers that only ask the study to stop; what the caller had set up comes back in the end.
// The study is held in an atomic pointer, the one thing that a handler may read. From the second signal on a timer
// runs: whatever hangs (a plugin, a disk, a process), it ends the program.
#include "terminal/signals.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iterator>

#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<host::Study*> g_study{nullptr};
std::atomic<bool> g_continued{false};
static_assert(std::atomic<bool>::is_always_lock_free, "written by a signal handler");
static_assert(std::atomic<host::Study*>::is_always_lock_free, "read by a signal handler");

std::atomic<int> g_asked{0};
constexpr int kPatienceUs = 800'000;  // from the second signal to the end, whatever hangs

void end_now(int) {
  constexpr char kMessage[] =
      "\ndsat-host: ended at once: something did not answer; its trials are killed, dsat-host resume goes on\n";
  const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  (void)written;
  _exit(kInterrupted);  // each dsat-launch hears of it from the kernel and kills its trial
}

void handle(int) {
  const int saved_errno = errno;
  if (host::Study* study = g_study.load()) study->request_stop();
  if (g_asked.fetch_add(1) == 1) {
    itimerval once{};
    once.it_value.tv_usec = kPatienceUs;
    setitimer(ITIMER_REAL, &once, nullptr);
  }
  errno = saved_errno;
}

void note_continued(int) { g_continued = true; }

}  // namespace

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

StopOnSignal::StopOnSignal(host::Study& study) {
  g_study = &study;
  g_asked = 0;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  struct sigaction last {};
  last.sa_handler = end_now;
  sigemptyset(&last.sa_mask);
  sigaction(SIGALRM, &last, &alarm_before_);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // nohup and shells that run jobs in the background ignore some of them on purpose.
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
  action.sa_handler = note_continued;
  sigaction(SIGCONT, &action, &before_continue_);
}

StopOnSignal::~StopOnSignal() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sigaction(SIGCONT, &before_continue_, nullptr);
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
  sigaction(SIGALRM, &alarm_before_, nullptr);
  g_study = nullptr;
}

bool continued_since_last_asked() { return g_continued.exchange(false); }

}  // namespace dsat::cli
