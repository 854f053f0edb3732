// The time needed is the mean time of a completed trial, times the rounds of trials that follow, and a fifth more.
#include "study/turn/time_budget.h"

#include <algorithm>

namespace dsat::host {

void TimeBudget::begin(Time now) {
  if (budget_) end_ = now + std::max(std::chrono::milliseconds(0), *budget_ - used_);
}

void TimeBudget::trial_ended(uint64_t id, Time now, bool completed) {
  const auto start = started_.find(id);
  if (start == started_.end()) return;
  if (completed) {
    sum_ += now - start->second;
    ++completed_;
  }
  started_.erase(start);
}

std::optional<TimeBudget::Time> TimeBudget::end_of_search(int later_trials, int at_once) const {
  if (!end_ || later_trials < 1 || completed_ == 0) return end_;
  // The finals and the comparison follow each other, so there are at least two rounds.
  const int rounds = std::max((later_trials + at_once - 1) / std::max(1, at_once), std::min(later_trials, 2));
  const auto needed = sum_ / completed_ * rounds * 6 / 5;
  return needed * kMostShare > *budget_ ? *end_ : *end_ - needed;
}

}  // namespace dsat::host
