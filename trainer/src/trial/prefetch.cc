// Workers take the lowest number that nobody has taken, as long as it is not too far ahead of what was given.
// One lock and one condition: batches are few and large.
#include "trial/prefetch.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

namespace dsat::trainer {

Prefetch::Prefetch(Make make, int64_t first, int64_t end, int64_t workers, int64_t ahead)
    : make_(std::move(make)), end_(end), ahead_(ahead), next_to_make_(first), next_to_give_(first) {
  const int64_t useful = std::min(workers, end - first);
  for (int64_t i = 0; i < useful; ++i) workers_.emplace_back([this] { work(); });
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Prefetch::Made Prefetch::made(int64_t number) const {
  try {
    return {make_(number), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

void Prefetch::work() {
  const c10::AutoGradMode no_graph(false);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || next_to_make_ >= end_ || next_to_make_ < next_to_give_ + ahead_; });
    if (stops_ || next_to_make_ >= end_) return;
    const int64_t number = next_to_make_++;
    lock.unlock();
    Made result = made(number);
    lock.lock();
    made_.emplace(number, std::move(result));
    changed_.notify_all();
  }
}

Tensors Prefetch::next() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return made_.count(next_to_give_) > 0; });
  Made result = std::move(made_.extract(next_to_give_++).mapped());
  changed_.notify_all();
  if (result.error) std::rethrow_exception(result.error);
  return std::move(result.batch);
}

}  // namespace dsat::trainer
