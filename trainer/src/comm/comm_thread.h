// A rank's communication thread: operations run one after the other, in the order in which they were started, beside
// the thread that computes. This is what overlap_comm runs on.
//
// One rank alone has nobody to talk to: it has no thread, and its operations run at once in the caller. On a device
// with queues (CUDA streams) the thread has a queue of its own: an operation begins after all that its caller had
// started on the caller's queue, and what the caller starts after wait() comes after the operation. Threading: the
// compute thread calls start() and run(), and wait() of what they return. Ownership: shares the group; an operation
// owns all the tensors that it uses, until wait() has returned. Its caller takes and frees their memory, so that the
// peak of a step does not depend on how far this thread has come. Errors: an operation's exception comes out of its
// wait(); later operations still run.
#ifndef DSAT_TRAINER_COMM_COMM_THREAD_H_
#define DSAT_TRAINER_COMM_COMM_THREAD_H_

#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "dsat/trainer/comm.h"

namespace dsat::trainer {

class CommThread {
 public:
  using Operation = std::function<void(Comm&)>;

  explicit CommThread(std::shared_ptr<Comm> comm, at::Device device = at::kCPU);
  // Waits for what was started. While an exception unwinds the stack it detaches the thread instead: an operation whose
  // peer is gone may never end.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  // Never nullptr. `name`: the operation in words, for errors and for the launcher, which reports what a rank waits in.
  std::unique_ptr<Pending> start(std::string name, Operation operation);
  // start() and wait(); where nothing is under way the caller runs the operation itself.
  void run(std::string name, const Operation& operation);

  Comm& comm() const { return *comm_; }

 private:
  class Queue;
  std::shared_ptr<Comm> comm_;
  std::shared_ptr<Queue> queue_;       // shared with the thread, which may outlive this object
  std::optional<c10::Stream> stream_;  // none on the CPU
  std::thread thread_;                 // none for one rank alone
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_COMM_THREAD_H_
