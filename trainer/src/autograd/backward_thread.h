// Which thread runs a backward pass: always the one that asked for it.
//
// The gradient hooks of this room and the watch over storages are not made for two threads at once. Ownership: the
// setting is LibTorch's, kept per thread and restored at the end. Threading: made and ended on the compute thread.
// Errors: none.
#ifndef DSAT_TRAINER_AUTOGRAD_BACKWARD_THREAD_H_
#define DSAT_TRAINER_AUTOGRAD_BACKWARD_THREAD_H_

#include <c10/core/AutogradState.h>

namespace dsat::trainer {

// While it lives, backward passes that this thread starts run on it, as those of the CPU always do: by default LibTorch
// gives those of a device to a thread of its own. LibTorch 1 has no such setting; there the caller waits for that
// thread.
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

#endif  // DSAT_TRAINER_AUTOGRAD_BACKWARD_THREAD_H_
