// The host's one poll loop: file descriptors, timers, and a way to be woken from other threads.
//
// Threading: everything on the control thread but wake(), which is async-signal-safe and legal anywhere.
#ifndef DSAT_HOST_LOOP_H_
#define DSAT_HOST_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace dsat::host {

class Loop {
 public:
  using Clock = std::chrono::steady_clock;
  using Callback = std::function<void()>;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Calls back whenever fd is readable or hung up, until unwatch. A callback may watch and unwatch anything.
  void watch(int fd, Callback callback);
  void unwatch(int fd);

  // Calls back once, at or after `when`. Returns an id for cancel; a cancelled or spent id is ignored.
  uint64_t at(Clock::time_point when, Callback callback);
  void cancel(uint64_t timer);

  // Makes run_once return soon; `on_wake` runs first. Any number of wakes may become one.
  void wake() noexcept;
  void on_wake(Callback callback);

  // Waits for something and dispatches all that is ready.
  void run_once();

 private:
  struct Timer {
    uint64_t id;
    Callback callback;
  };
  void wait_and_dispatch_fds();
  void dispatch_due_timers();

  std::map<int, Callback> watches_;
  std::vector<int> unwatched_;  // during the current dispatch: what poll said of them is no longer theirs
  std::multimap<Clock::time_point, Timer> timers_;
  uint64_t next_timer_ = 1;
  int wake_fd_ = -1;
  Callback on_wake_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_LOOP_H_
