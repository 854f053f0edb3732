// The communication thread: a queue of operations behind a mutex, and for each operation a state that start() returns.
// On a device, events order its stream and the caller's, so neither thread waits for the device.
#include "comm/comm_thread.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "device/device.h"
#include "watch/heartbeat.h"

namespace dsat::trainer {
namespace {

// Orders the communication stream between two points of the caller's stream: it goes on after what the caller had
// started when this was made, and the caller goes on after it from wait() on.
class StreamOrder {
 public:
  explicit StreamOrder(const c10::Stream& stream)
      : stream_(stream), begin_(stream.device_type()), end_(stream.device_type()) {
    begin_.record(current_stream(stream.device()));
  }
  template <typename Call>
  void run(Call call) {
    const c10::StreamGuard on_own_stream(stream_);
    begin_.block(stream_);
    call();
    end_.record(stream_);
  }
  void wait() { end_.block(current_stream(stream_.device())); }

 private:
  c10::Stream stream_;
  c10::Event begin_, end_;
};

// One operation from its start to its end: the communication thread calls run(), the compute thread wait().
class StartedOperation {
 public:
  StartedOperation(std::string name, CommThread::Operation operation, const std::optional<c10::Stream>& stream)
      : name_(std::move(name)), operation_(std::move(operation)) {
    if (stream) order_.emplace(*stream);
  }

  void run(Comm& comm) {
    std::exception_ptr failure;
    try {
      const WaitingIn waiting(name_);
      order_ ? order_->run([&] { operation_(comm); }) : operation_(comm);
    } catch (const PeerLost& error) {
      // Which collective it was helps to find the rank that did not come.
      failure = std::make_exception_ptr(PeerLost(fmt::format("{}: {}", name_, error.what())));
    } catch (...) {
      failure = std::current_exception();
    }
    // Under the lock, or wait() could miss the notification between its look and its sleep.
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = failure;
    is_done_ = true;
    done_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return is_done_; });
    if (order_ && !failure_) order_->wait();
    // The compute thread frees the operation's tensors, at a point of its own program: if the communication thread did,
    // the peak of a step would depend on which of the two is faster.
    operation_ = nullptr;
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::string name_;
  CommThread::Operation operation_;
  std::optional<StreamOrder> order_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable done_;
  bool is_done_ = false;
  std::exception_ptr failure_;
};

class OperationPending : public Pending {
 public:
  explicit OperationPending(std::shared_ptr<StartedOperation> operation) : operation_(std::move(operation)) {}
  void wait() override { operation_->wait(); }

 private:
  std::shared_ptr<StartedOperation> operation_;
};

}  // namespace

class CommThread::Queue {
 public:
  void add(std::shared_ptr<StartedOperation> operation) {
    const std::lock_guard<std::mutex> lock(mutex_);
    operations_.push_back(std::move(operation));
    changed_.notify_one();
  }
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_closed_ = true;
    changed_.notify_one();
  }
  bool is_idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return operations_.empty();
  }
  // The thread's whole life: until the queue is closed and empty. An operation stays in the queue while it runs, so
  // that is_idle() is true only when none is under way.
  void run(Comm& comm) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_closed_ || !operations_.empty(); });
      if (operations_.empty()) return;
      const std::shared_ptr<StartedOperation> operation = operations_.front();
      lock.unlock();
      operation->run(comm);
      lock.lock();
      operations_.pop_front();
    }
  }

 private:
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::deque<std::shared_ptr<StartedOperation>> operations_;
  bool is_closed_ = false;
};

CommThread::CommThread(std::shared_ptr<Comm> comm, at::Device device)
    : comm_(std::move(comm)), queue_(std::make_shared<Queue>()) {
  if (comm_->size() == 1) return;
  if (!device.is_cpu()) stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  thread_ = std::thread([own_comm = comm_, queue = queue_, device] {
    // The current device is a thread's own setting.
    if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
    queue->run(*own_comm);
  });
}

CommThread::~CommThread() {
  if (!thread_.joinable()) return;
  queue_->close();
  if (std::uncaught_exceptions() > 0) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

std::unique_ptr<Pending> CommThread::start(std::string name, Operation operation) {
  auto started = std::make_shared<StartedOperation>(std::move(name), std::move(operation), stream_);
  if (thread_.joinable()) {
    queue_->add(started);
  } else {
    started->run(*comm_);
  }
  return std::make_unique<OperationPending>(std::move(started));
}

// In the caller's thread where the communication thread is idle: a hand-over would cost two wake-ups. Where it is not,
// the order of collectives, which must be the same on all ranks, asks for its queue.
void CommThread::run(std::string name, const Operation& operation) {
  if (thread_.joinable() && !queue_->is_idle()) return start(std::move(name), operation)->wait();
  const WaitingIn waiting(std::move(name));
  operation(*comm_);
}

}  // namespace dsat::trainer
