// Signal handlers that only ask the study to stop; what the caller had set up comes back in the end.
// The study is held in an atomic pointer, the one thing that a handler may read.
#include "terminal/signals.h"

#include <atomic>
#include <cerrno>
#include <iterator>

namespace dsat::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<host::Study*> g_study{nullptr};
std::atomic<bool> g_continued{false};
static_assert(std::atomic<bool>::is_always_lock_free, "written by a signal handler");
static_assert(std::atomic<host::Study*>::is_always_lock_free, "read by a signal handler");

void handle(int) {
  const int saved_errno = errno;
  if (host::Study* study = g_study.load()) study->request_stop();
  errno = saved_errno;
}

void note_continued(int) { g_continued = true; }

}  // namespace

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

StopOnSignal::StopOnSignal(host::Study& study) {
  g_study = &study;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
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
  g_study = nullptr;
}

bool continued_since_last_asked() { return g_continued.exchange(false); }

}  // namespace dsat::cli
