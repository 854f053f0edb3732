// Blocks the signals and SIGCHLD, then takes the signals one by one and checks the child in between.
#include "terminal/held_signals.h"

#include <sys/wait.h>

#include <cerrno>
#include <ctime>

#include "terminal/signals.h"

namespace dsat::cli {

HeldSignals::HeldSignals(std::initializer_list<int> signals) {
  sigemptyset(&passed_on_);
  for (const int signal : signals) add_unless_ignored(passed_on_, signal);
  sigset_t blocked = passed_on_;
  sigaddset(&blocked, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

bool HeldSignals::has_one_that_ends() const {
  sigset_t waiting;
  sigpending(&waiting);
  sigandset(&waiting, &waiting, &passed_on_);
  sigdelset(&waiting, SIGTSTP);
  return !sigisemptyset(&waiting);
}

std::optional<int> HeldSignals::until_change_of(pid_t child, int wait_options,
                                                const std::function<void(int)>& pass_on) const {
  constexpr timespec kLook{1, 0};  // another thread may have received the SIGCHLD
  sigset_t awaited = passed_on_;
  sigaddset(&awaited, SIGCHLD);
  for (int status = 0;;) {
    const pid_t changed = waitpid(child, &status, wait_options | WNOHANG);
    if (changed == child) return status;
    if (changed < 0 && errno != EINTR) return std::nullopt;
    const int signal = sigtimedwait(&awaited, nullptr, &kLook);
    if (signal > 0 && signal != SIGCHLD) pass_on(signal);
  }
}

void HeldSignals::let_go() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace dsat::cli
