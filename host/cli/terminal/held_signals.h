// Signals that this program holds back while it waits for a child, to pass them on.
//
// Purpose: a handler runs at any point, so it can only keep numbers for later; signals that are blocked wait for the
//   place that is ready for them, also those that come while there is no child.
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
  // Those that are ignored on purpose (nohup) stay ignored.
  explicit HeldSignals(std::initializer_list<int> signals);
  // What has come and was not passed on comes now.
  ~HeldSignals() { let_go(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Has one come, other than Ctrl-Z, that was not passed on?
  bool has_one_that_ends() const;
  // Waits until the child has ended or, with WUNTRACED, has stopped. Gives `pass_on` each signal that comes meanwhile.
  // Returns the status as waitpid() gives it; nullopt: the child was lost sight of (errno).
  std::optional<int> until_change_of(pid_t child, int wait_options, const std::function<void(int)>& pass_on) const;
  // Blocks no longer than before.
  void let_go() const;
  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t passed_on_, before_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_HELD_SIGNALS_H_
