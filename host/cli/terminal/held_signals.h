// Signals that this program blocks while it waits for a child, and passes on to it.
//
// Purpose: a handler may run at any point, so it can do little more than store the signal's number. A blocked signal
//   stays pending until this program is ready, even if there is no child yet.
// Threading: one thread, the one that constructs it. A child of fork() calls let_go() first.
#ifndef DSAT_CLI_TERMINAL_HELD_SIGNALS_H_
#define DSAT_CLI_TERMINAL_HELD_SIGNALS_H_

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <initializer_list>
#include <optional>

namespace dsat::cli {

class HeldSignals {
 public:
  // Signals that are ignored on purpose (nohup) stay ignored.
  explicit HeldSignals(std::initializer_list<int> signals);
  // Pending signals that were not passed on are delivered now.
  ~HeldSignals() { let_go(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Is a signal pending, other than that of Ctrl-Z?
  bool has_one_that_ends() const;
  // Waits until the child has ended or, with WUNTRACED, has stopped. Gives `pass_on` each signal that comes meanwhile.
  // Returns the status of waitpid(); nullopt: waitpid() failed (errno).
  std::optional<int> until_change_of(pid_t child, int wait_options, const std::function<void(int)>& pass_on) const;
  // Restores the signal mask from before.
  void let_go() const;
  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t passed_on_, before_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_HELD_SIGNALS_H_
