// Why a study, or its search, ends: budgets of devices and of time, requests to stop, a journal that is gone, slots
// that cannot be had, failures. A search that ends by itself is in coordinator.cc (advance_phase), the phases' own
// reasons in phases.cc.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/guarded.h"
#include "plan/device_hours.h"
#include "record/devices.h"
#include "study/turn/coordinator.h"

namespace dsat::host {

void Coordinator::watch_budget() {
  loop_.cancel(budget_timer_);
  if (plan_.budget.empty() || ending_) return;
  double hours = spent_device_hours_;
  size_t devices = 0;
  const std::string now = loop_.utc_now();
  for (const Trial& trial : trials_.all()) {
    if (trial.state != TrialState::running || trial.record.started_at.empty()) continue;
    hours += device_hours(trial.record, now);
    devices += devices_in(trial.record.slots);
  }
  if (is_spent(plan_.budget, hours)) {
    return end_study(StudyStatus::completed, fmt::format("the budget is spent ({})", plan_.budget), true);
  }
  if (devices == 0) return;
  const std::chrono::duration<double, std::ratio<3600>> left((parse_device_hours(plan_.budget) - hours) /
                                                             static_cast<double>(devices));
  constexpr std::chrono::hours kFarAway{24};  // a later look is soon enough, and no clock overflows
  const auto wait = std::min<std::chrono::duration<double>>(left, kFarAway);
  budget_timer_ =
      loop_.at(loop_.now() + std::chrono::ceil<std::chrono::milliseconds>(wait) + std::chrono::milliseconds(1),
               [this] { watch_budget(); });
}

// The search ends a little before the time budget does: what follows it is part of the study.
void Coordinator::watch_time() {
  if (!time_.end() || run_.phase != Phase::searcher || run_.finish) return;
  const int later = plan_.max_trials - trial_limit(Phase::searcher, phase_view());
  const auto end = *time_.end_of_search(later, plan_.concurrency());
  loop_.cancel(search_timer_);
  if (loop_.now() >= end) return end_search(kTimeIsSpent, true);
  if (end < *time_.end()) search_timer_ = loop_.at(end, [] {});
}

void Coordinator::check_stop_requests() {
  const int level = stop_level_.load();
  if (level <= stop_level_acted_) return;
  stop_level_acted_ = level;
  end_study(StudyStatus::interrupted, "interrupted", true);
  trials_.request_stop_of_running();  // again, if they are being stopped gently
  loop_.wake();
}

// Whoever deletes a study that runs wants it to end; whoever did so by mistake is to learn of it now.
void Coordinator::watch_journal() {
  if (journal_.is_lost()) return fail(Error(DSAT_INTERNAL, journal_.lost_text()));
  // A simulation's time is not that of whoever deletes: its next commit will tell.
  if (!journal_.keeps() || runner_.commit_delay().count() > 0) return;
  loop_.at(loop_.now() + kLookForJournal, [this] { watch_journal(); });
}

// As if the searcher had finished, and what it has open ends; from here on it learns of nothing more, so that it can go
// on from here when the study is taken up with a raised limit.
void Coordinator::end_search(std::string reason, bool of_time) {
  if (run_.phase != Phase::searcher || run_.finish || ending_) return;
  searches_.end({journal_.next_event(), std::move(reason), of_time});
  journal_.put_meta("searches", searches_.to_json());
  run_.finish = finish_by_host(*searches_.current().end);
  run_.strategy.reset();
  stop_waiting();
}

// Ends what waits and is to be stopped; what runs is stopped after the commit. A strategy that has finished has no use
// for any open trial.
void Coordinator::stop_waiting() {
  if (run_.finish) trials_.request_stop_of_open();
  for (const uint64_t id : trials_.take_stops_of_waiting()) {
    TrialEnd end;
    end.id = id;
    end.outcome = Outcome::stopped;
    end.reason = trials_[id].record.started() ? "stopped" : "stopped before it ran";
    end.ended_at = loop_.utc_now();
    runner_.will_not_run(end);
    end_trial(std::move(end));
  }
}

// Nothing runs, and still there is no room: processes of earlier trials that cannot be ended hold it.
void Coordinator::end_without_slots(uint64_t id) {
  fail(
      Error(DSAT_INTERNAL,
            fmt::format("no slots are left for trial {}: processes that cannot be ended hold them; go on when they are "
                        "gone, or elsewhere",
                        id)));
}

// The first reason holds. What runs is stopped; run() returns when the last process is gone.
void Coordinator::end_study(StudyStatus status, std::string reason, bool resumable) {
  if (ending_) return;
  ending_ = Ending{status, std::move(reason), resumable};
  trials_.request_stop_of_running();
  loop_.wake();
}

// What runs is stopped and runs again when the study is resumed: no fault of the trials'.
void Coordinator::fail(const std::exception& error) {
  end_study(StudyStatus::failed, status_of(error).message(), true);
}

}  // namespace dsat::host
