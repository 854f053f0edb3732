// The time budget of a study: when the search has to end, so that what follows it still fits.
//
// Purpose: after the search the best few are measured again. That is worth a little of the budget and needs some of it
//   to be left. The time it takes is estimated from the trials so far. If it would take more than a kMostShare-th of
//   the budget, the search gets the whole budget.
// Threading: control thread. Units: the loop's time.
#ifndef DSAT_HOST_STUDY_TURN_TIME_BUDGET_H_
#define DSAT_HOST_STUDY_TURN_TIME_BUDGET_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "base/event_loop.h"

namespace dsat::host {

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

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_TIME_BUDGET_H_
