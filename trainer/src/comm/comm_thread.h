// A rank's communication thread: operations run one after the other, in the order in which they were started, beside
// the thread that computes.
//
// One rank alone has nobody to talk to: its operations run at once in the caller. On a device with queues (CUDA
// streams) an operation begins after all that its caller had started there, on a queue of the lane's own, and what the
// caller starts after wait() comes after it. Threading: start() and run() from one thread; wait() there too. An
// operation owns all the tensors that it uses, until wait() has returned. Errors: an operation's exception comes out of
// its wait(); later operations still run.
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

class Lane {
 public:
  using Operation = std::function<void(Comm&)>;

  explicit Lane(std::shared_ptr<Comm> comm, at::Device device = at::kCPU);
  // Waits for what was started; while an exception unwinds the stack it leaves that to itself, for it may never end.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Never nullptr. `name`: what other ranks are told that this one waits in.
  std::unique_ptr<Pending> start(std::string name, Operation operation);
  // start() and wait(), without the way to the other thread where nothing is under way.
  void run(std::string name, const Operation& operation);

  Comm& comm() const { return *comm_; }

 private:
  class Queue;
  std::shared_ptr<Comm> comm_;
  std::shared_ptr<Queue> queue_;
  std::optional<c10::Stream> stream_;  // none on the CPU
  std::thread thread_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_COMM_COMM_THREAD_H_
