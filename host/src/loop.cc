#include "loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

namespace dsat::host {

namespace {

// Milliseconds for poll: rounded up, so that a timer is never polled for in a busy loop just before it is due.
int poll_timeout(Loop::Clock::time_point next) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Loop::Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

}  // namespace

Loop::Loop() : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Loop::~Loop() { close(wake_fd_); }

void Loop::watch(int fd, Callback callback) { watches_[fd] = std::move(callback); }

void Loop::unwatch(int fd) {
  watches_.erase(fd);
  unwatched_.push_back(fd);
}

uint64_t Loop::at(Clock::time_point when, Callback callback) {
  const uint64_t id = next_timer_++;
  timers_.emplace(when, Timer{id, std::move(callback)});
  return id;
}

void Loop::cancel(uint64_t timer) {
  const auto it =
      std::find_if(timers_.begin(), timers_.end(), [timer](const auto& entry) { return entry.second.id == timer; });
  if (it != timers_.end()) timers_.erase(it);
}

void Loop::wake() noexcept {
  // A signal handler may call this: errno belongs to whatever it interrupted. A full counter is a pending wake too.
  const int saved = errno;
  const uint64_t one = 1;
  const ssize_t written = write(wake_fd_, &one, sizeof one);
  (void)written;
  errno = saved;
}

void Loop::on_wake(Callback callback) { on_wake_ = std::move(callback); }

void Loop::run_once() {
  wait_and_dispatch_fds();
  dispatch_due_timers();
}

void Loop::wait_and_dispatch_fds() {
  std::vector<pollfd> fds{{wake_fd_, POLLIN, 0}};
  for (const auto& [fd, callback] : watches_) fds.push_back({fd, POLLIN, 0});
  const int timeout = timers_.empty() ? -1 : poll_timeout(timers_.begin()->first);
  if (poll(fds.data(), fds.size(), timeout) <= 0) return;  // EINTR: whoever interrupted us also wakes us

  unwatched_.clear();
  if (fds[0].revents != 0) {
    uint64_t count = 0;
    const ssize_t got = read(wake_fd_, &count, sizeof count);
    (void)got;
    if (on_wake_) on_wake_();
  }
  for (size_t i = 1; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    // A number that an earlier callback unwatched may by now belong to another file: not its event.
    if (std::find(unwatched_.begin(), unwatched_.end(), fds[i].fd) != unwatched_.end()) continue;
    const auto it = watches_.find(fds[i].fd);
    if (it == watches_.end()) continue;
    const Callback callback = it->second;  // a copy: it may unwatch itself
    callback();
  }
}

void Loop::dispatch_due_timers() {
  // Only those due now: a callback that sets a timer for "now" must not keep the descriptors waiting for ever.
  std::vector<uint64_t> due;
  const Clock::time_point now = Clock::now();
  for (auto it = timers_.begin(); it != timers_.end() && it->first <= now; ++it) due.push_back(it->second.id);
  for (const uint64_t id : due) {
    const auto it =
        std::find_if(timers_.begin(), timers_.end(), [id](const auto& entry) { return entry.second.id == id; });
    if (it == timers_.end()) continue;  // cancelled by a callback before it
    const Callback callback = std::move(it->second.callback);
    timers_.erase(it);
    callback();
  }
}

}  // namespace dsat::host
