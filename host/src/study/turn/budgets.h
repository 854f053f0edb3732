// The budgets of a study at work: time and device hours.
//
// Threading: control thread. Ownership: refers to state and loop. Units: device hours; the loop's time.
#ifndef DSAT_HOST_STUDY_TURN_BUDGETS_H_
#define DSAT_HOST_STUDY_TURN_BUDGETS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/event_loop.h"
#include "study/state/study_state.h"
#include "study/turn/time_budget.h"

namespace dsat::host {

// The reason of an end for want of time.
inline constexpr const char* kTimeIsSpent = "the time budget is spent";

class Budgets {
 public:
  // `on_spent` is called, with the reason, at the moment when a budget is spent.
  Budgets(const StudyState& state, Loop& loop, std::function<void(const std::string& reason)> on_spent);

  // The study begins now.
  void begin();
  void trial_started(uint64_t id) { time_.trial_started(id, loop_.now()); }
  void trial_ended(uint64_t id, bool completed) { time_.trial_ended(id, loop_.now(), completed); }
  // Trials have started or ended: looks at the device hours, now and when the running trials will have spent them.
  void watch_device_hours();
  // The search ends a little before the time budget does: what follows it is part of the study. Wakes the loop then.
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
