// One poll() waits for all descriptors and a wake-up eventfd. Timers are in a multimap by time, and the first one
// decides how long poll waits.
#include "base/event_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"

namespace dsat::host {

namespace {

// 2000-01-01T00:00:00Z
constexpr std::chrono::seconds kSimulatedEpoch{946684800};

}  // namespace

Loop::Loop(Time time) : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), simulated_(time == Time::simulated) {
  if (wake_fd_ < 0) throw internal_error(std::string("cannot make an event loop (eventfd): ") + std::strerror(errno));
}

std::string Loop::utc_now() const {
  if (!simulated_) return host::utc_now();
  const auto since = std::chrono::duration_cast<std::chrono::system_clock::duration>(now_.time_since_epoch());
  return format_rfc3339(std::chrono::system_clock::time_point(kSimulatedEpoch + since));
}

void Loop::go_on_from(std::chrono::system_clock::time_point utc) {
  if (simulated_) now_ = std::max(now_, Clock::time_point(utc.time_since_epoch() - kSimulatedEpoch));
}

Loop::~Loop() { close(wake_fd_); }

void Loop::watch(int fd, Callback callback) { watches_[fd] = std::move(callback); }

void Loop::unwatch(int fd) {
  watches_.erase(fd);
  unwatched_.push_back(fd);
}

uint64_t Loop::at(Clock::time_point when, Callback callback) {
  const uint64_t id = next_timer_++;
  timers_by_id_.emplace(id, timers_.emplace(when, Timer{id, std::move(callback)}));
  return id;
}

void Loop::cancel(uint64_t timer) {
  const auto it = timers_by_id_.find(timer);
  if (it == timers_by_id_.end()) return;
  timers_.erase(it->second);
  timers_by_id_.erase(it);
}

void Loop::wake() noexcept {
  // A signal handler may call this, so errno is restored. If the counter is full, a wake is pending already.
  const int saved = errno;
  const uint64_t one = 1;
  const ssize_t written = write(wake_fd_, &one, sizeof one);
  (void)written;
  errno = saved;
}

void Loop::on_wake(Callback callback) { on_wake_ = std::move(callback); }

void Loop::run_once() {
  const bool ready = wait_and_dispatch_fds();
  if (simulated_ && !ready && !timers_.empty()) now_ = std::max(now_, timers_.begin()->first);
  dispatch_due_timers();
}

// Returns milliseconds for poll, rounded up, so that there is no busy loop just before a timer is due.
int Loop::poll_timeout() const {
  if (timers_.empty()) return -1;
  if (simulated_) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

bool Loop::wait_and_dispatch_fds() {
  std::vector<pollfd> fds{{wake_fd_, POLLIN, 0}};
  for (const auto& [fd, callback] : watches_) fds.push_back({fd, POLLIN, 0});
  if (poll(fds.data(), fds.size(), poll_timeout()) <= 0) return false;  // EINTR: the signal handler has called wake()

  unwatched_.clear();
  if (fds[0].revents != 0) {
    uint64_t count = 0;
    const ssize_t got = read(wake_fd_, &count, sizeof count);
    (void)got;
    if (on_wake_) on_wake_();
  }
  for (size_t i = 1; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    // An earlier callback may have unwatched this descriptor, and its number may now belong to another file.
    if (std::find(unwatched_.begin(), unwatched_.end(), fds[i].fd) != unwatched_.end()) continue;
    const auto it = watches_.find(fds[i].fd);
    if (it == watches_.end()) continue;
    const Callback callback = it->second;  // a copy, because the callback may unwatch its descriptor
    callback();
  }
  return true;
}

void Loop::dispatch_due_timers() {
  // Only timers that are due now: a callback that sets a timer for "now" must not block the descriptors for ever.
  std::vector<uint64_t> due;
  const Clock::time_point now = this->now();
  for (auto it = timers_.begin(); it != timers_.end() && it->first <= now; ++it) due.push_back(it->second.id);
  for (const uint64_t id : due) {
    const auto it = timers_by_id_.find(id);
    if (it == timers_by_id_.end()) continue;  // cancelled by a callback before it
    const Callback callback = std::move(it->second->second.callback);
    timers_.erase(it->second);
    timers_by_id_.erase(it);
    callback();
  }
}

}  // namespace dsat::host
