// The budgets of a study at work: time and device hours.
//
// Purpose: after the search the best few are measured again, and a part of the time budget is kept for this. Its length
//   is estimated from the trials so far. If it would be more than a kMostShare-th of the budget, the search gets the
//   whole budget.
// Threading: control thread. Ownership: refers to state and loop. Units: device hours; the loop's time.
#ifndef DSAT_HOST_STUDY_TURN_BUDGETS_H_
#define DSAT_HOST_STUDY_TURN_BUDGETS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "study/state/study_state.h"

namespace dsat::host {

// The reason when the time budget has ended the search.
inline constexpr const char* kTimeIsSpent = "the time budget is spent";

class TimeBudget {
 public:
  using Time = Loop::Clock::time_point;
  static constexpr int kMostShare = 4;

  // nullopt: no budget.
  explicit TimeBudget(std::optional<std::chrono::milliseconds> budget) : budget_(budget) {}

  // `used`: by an earlier process of the same run. Call before begin().
  void use(std::chrono::milliseconds used) { used_ = used; }
  void begin(Time now);
  std::optional<Time> end() const { return end_; }

  void trial_started(uint64_t id, Time now) { started_[id] = now; }
  void trial_ended(uint64_t id, Time now, bool completed);

  // `later_trials` follow the search, `at_once` of them side by side.
  std::optional<Time> end_of_search(int later_trials, int at_once) const;

 private:
  std::optional<std::chrono::milliseconds> budget_;
  std::chrono::milliseconds used_{0};
  std::optional<Time> end_;
  std::map<uint64_t, Time> started_;
  Loop::Clock::duration sum_{0};  // of the completed trials
  int completed_ = 0;
};

class Budgets {
 public:
  // `on_spent` is called, with the reason, at the moment when a budget is spent.
  Budgets(const StudyState& state, Loop& loop, std::function<void(const std::string& reason)> on_spent);

  void begin();
  void trial_started(uint64_t id) { time_.trial_started(id, loop_.now()); }
  void trial_ended(uint64_t id, bool completed) { time_.trial_ended(id, loop_.now(), completed); }
  // Trials have started or ended: looks at the device hours, now and when the running trials will have spent them.
  void watch_device_hours();
  // The search ends a little before the time budget does: the phases after it need time, too. The loop is woken then.
  bool is_search_over();

 private:
  const StudyState& state_;
  Loop& loop_;
  std::function<void(const std::string&)> on_spent_;
  TimeBudget time_;
  uint64_t search_timer_ = 0, hours_timer_ = 0;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_BUDGETS_H_
