#include "comm/comm_thread.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "device/device.h"
#include "watch/heartbeat.h"

namespace dsat::trainer {
namespace {

// A device's queues in order: the lane's goes on after what the caller had started, and the caller after the lane.
class Order {
 public:
  explicit Order(const c10::Stream& lane) : lane_(lane), begin_(lane.device_type()), end_(lane.device_type()) {
    begin_.record(current_stream(lane.device()));
  }
  template <typename Call>
  void run(Call call) {
    const c10::StreamGuard on_lane(lane_);
    begin_.block(lane_);
    call();
    end_.record(lane_);
  }
  void wait() { end_.block(current_stream(lane_.device())); }

 private:
  c10::Stream lane_;
  c10::Event begin_, end_;
};

// One operation from its start to its end.
class Job {
 public:
  Job(std::string name, Lane::Operation operation, const std::optional<c10::Stream>& stream)
      : name_(std::move(name)), operation_(std::move(operation)) {
    if (stream) order_.emplace(*stream);
  }

  void run(Comm& comm) {
    std::exception_ptr failure;
    try {
      const WaitingIn waiting(name_);
      order_ ? order_->run([&] { operation_(comm); }) : operation_(comm);
    } catch (const PeerLost& error) {
      failure = std::make_exception_ptr(PeerLost(name_ + ": " + error.what()));
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = failure;
    is_done_ = true;
    done_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return is_done_; });
    if (order_ && !failure_) order_->wait();
    operation_ = nullptr;  // gives its tensors back
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::string name_;
  Lane::Operation operation_;
  std::optional<Order> order_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable done_;
  bool is_done_ = false;
  std::exception_ptr failure_;
};

class JobPending : public Pending {
 public:
  explicit JobPending(std::shared_ptr<Job> job) : job_(std::move(job)) {}
  void wait() override { job_->wait(); }

 private:
  std::shared_ptr<Job> job_;
};

}  // namespace

class Lane::Queue {
 public:
  void add(std::shared_ptr<Job> job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_one();
  }
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_closed_ = true;
    changed_.notify_one();
  }
  bool is_idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return jobs_.empty();
  }
  // Until it is closed and empty. A job stays in the queue while it runs.
  void run(Comm& comm) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_closed_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const std::shared_ptr<Job> job = jobs_.front();
      lock.unlock();
      job->run(comm);
      lock.lock();
      jobs_.pop_front();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool is_closed_ = false;
};

Lane::Lane(std::shared_ptr<Comm> comm, at::Device device) : comm_(std::move(comm)), queue_(std::make_shared<Queue>()) {
  if (comm_->size() == 1) return;
  if (!device.is_cpu()) stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  thread_ = std::thread([own_comm = comm_, queue = queue_, device] {
    if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
    queue->run(*own_comm);
  });
}

Lane::~Lane() {
  if (!thread_.joinable()) return;
  queue_->close();
  if (std::uncaught_exceptions() > 0) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

std::unique_ptr<Pending> Lane::start(std::string name, Operation operation) {
  auto job = std::make_shared<Job>(std::move(name), std::move(operation), stream_);
  if (thread_.joinable()) {
    queue_->add(job);
  } else {
    job->run(*comm_);
  }
  return std::make_unique<JobPending>(std::move(job));
}

void Lane::run(std::string name, const Operation& operation) {
  if (thread_.joinable() && !queue_->is_idle()) return start(std::move(name), operation)->wait();
  const WaitingIn waiting(std::move(name));
  operation(*comm_);
}

}  // namespace dsat::trainer
