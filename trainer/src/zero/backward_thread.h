// Where a backward pass runs.
#ifndef DSAT_TRAINER_ZERO_BACKWARD_THREAD_H_
#define DSAT_TRAINER_ZERO_BACKWARD_THREAD_H_

#include <c10/core/AutogradState.h>

namespace dsat::trainer {

// While it lives, backward passes that this thread starts run on it, as those of the CPU always do: LibTorch would give
// those of a device to a thread of its own. LibTorch 1 cannot be told; there the caller waits for that thread.
class BackwardOnThisThread {
#if DSAT_LIBTORCH_MAJOR >= 2
 public:
  BackwardOnThisThread() : before_(state().get_multithreading_enabled()) { state().set_multithreading_enabled(false); }
  ~BackwardOnThisThread() { state().set_multithreading_enabled(before_); }
  BackwardOnThisThread(const BackwardOnThisThread&) = delete;
  BackwardOnThisThread& operator=(const BackwardOnThisThread&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }
  bool before_;
#else
 public:
  BackwardOnThisThread() {}
#endif
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_ZERO_BACKWARD_THREAD_H_
