// The host's poll loop: file descriptors, timers, and wake-ups from other threads.
//
// In real time the loop waits. In virtual time its clock stands still while anything is ready and then jumps to the
// next timer. Code that takes the time and its timers from the loop works in both.
// Threading: everything on the control thread except wake(), which is async-signal-safe and allowed anywhere.
// Ownership: descriptors belong to their owners. Errors: the constructor throws dsat::Error; callbacks must not throw.
#ifndef DSAT_HOST_BASE_EVENT_LOOP_H_
#define DSAT_HOST_BASE_EVENT_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace dsat::host {

class Loop {
 public:
  using Clock = std::chrono::steady_clock;
  using Callback = std::function<void()>;
  enum class Time { real, simulated };

  explicit Loop(Time time = Time::real);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  Clock::time_point now() const { return simulated_ ? now_ : Clock::now(); }
  // Returns the wall clock as RFC 3339; simulated time begins at 2000-01-01T00:00:00Z.
  std::string utc_now() const;
  // Sets a simulation's clock to `utc` if that is later. Call it before setting any timer.
  void go_on_from(std::chrono::system_clock::time_point utc);

  // Calls `callback` whenever fd is readable or hung up, until unwatch. A callback may watch and unwatch anything.
  void watch(int fd, Callback callback);
  void unwatch(int fd);

  // Calls `callback` once, at `when` or later. Returns an id for cancel; the id of a cancelled or past timer is
  // ignored.
  uint64_t at(Clock::time_point when, Callback callback);
  void cancel(uint64_t timer);

  // Makes run_once return soon; `on_wake` runs first. Several wakes may become one.
  void wake() noexcept;
  void on_wake(Callback callback);

  // Waits for an event and dispatches all that are ready.
  void run_once();

 private:
  struct Timer {
    uint64_t id;
    Callback callback;
  };
  using Timers = std::multimap<Clock::time_point, Timer>;
  bool wait_and_dispatch_fds();
  void dispatch_due_timers();
  int poll_timeout() const;

  std::map<int, Callback> watches_;
  std::vector<int> unwatched_;  // in the current dispatch; their pending events are ignored
  Timers timers_;
  std::unordered_map<uint64_t, Timers::iterator> timers_by_id_;
  uint64_t next_timer_ = 1;
  int wake_fd_ = -1;
  Callback on_wake_;
  bool simulated_ = false;
  Clock::time_point now_{};  // of a simulation
};

}  // namespace dsat::host

#endif  // DSAT_HOST_BASE_EVENT_LOOP_H_
