// Sums the hours of all runs and sets timers for the moments when a budget will be spent.
#include "study/turn/budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "plan/device_hours.h"
#include "record/devices.h"
#include "study/state/phases.h"

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

Budgets::Budgets(const StudyState& state, Loop& loop, std::function<void(const std::string&)> on_spent)
    : state_(state), loop_(loop), on_spent_(std::move(on_spent)), time_(state.plan.time_budget) {
  time_.use(state.time_used);
}

void Budgets::begin() {
  time_.begin(loop_.now());
  if (time_.end()) loop_.at(*time_.end(), [this] { on_spent_(kTimeIsSpent); });
}

void Budgets::watch_device_hours() {
  loop_.cancel(hours_timer_);
  const std::string& budget = state_.plan.budget;
  if (budget.empty() || state_.ending) return;
  double hours = state_.spent_device_hours;
  size_t devices = 0;
  const std::string now = loop_.utc_now();
  for (const Trial& trial : state_.trials.all()) {
    if (trial.state != TrialState::running || trial.record.started_at.empty()) continue;
    hours += device_hours(trial.record, now);
    devices += devices_in(trial.record.slots);
  }
  if (is_spent(budget, hours)) return on_spent_(fmt::format("the budget is spent ({})", budget));
  if (devices == 0) return;
  const std::chrono::duration<double, std::ratio<3600>> left((parse_device_hours(budget) - hours) /
                                                             static_cast<double>(devices));
  constexpr std::chrono::hours kFarAway{24};  // a later look is soon enough, and no clock overflows
  const auto wait = std::min<std::chrono::duration<double>>(left, kFarAway);
  hours_timer_ =
      loop_.at(loop_.now() + std::chrono::ceil<std::chrono::milliseconds>(wait) + std::chrono::milliseconds(1),
               [this] { watch_device_hours(); });
}

bool Budgets::is_search_over() {
  if (!time_.end() || state_.run.phase != Phase::searcher || state_.run.finish) return false;
  const int later = state_.plan.max_trials - trial_limit(Phase::searcher, state_);
  const auto end = *time_.end_of_search(later, state_.plan.concurrency());
  loop_.cancel(search_timer_);
  if (loop_.now() >= end) return true;
  if (end < *time_.end()) search_timer_ = loop_.at(end, [] {});
  return false;
}

}  // namespace dsat::host
