// Catches everything at the call. The first exception is logged, in the hope that the observer's log still works.
#include "study/turn/guarded_observer.h"

#include <fmt/format.h>

#include <utility>

#include "base/guarded.h"

namespace dsat::host {

template <class Call>
void GuardedObserver::guard(const char* name, Call&& call) noexcept {
  try {
    call();
  } catch (...) {
    warn_once(name, status_of_caught().message());
  }
}

void GuardedObserver::warn_once(const char* name, const std::string& what) {
  if (std::exchange(has_warned_, true)) return;
  on_log(Severity::warning, fmt::format("the observer's {} threw, and the study goes on: {}", name, what));
}

void GuardedObserver::on_log(Severity severity, std::string_view message) {
  guard("on_log", [&] { observer_.on_log(severity, message); });
}

void GuardedObserver::on_trial_submitted(const TrialRecord& trial) {
  guard("on_trial_submitted", [&] { observer_.on_trial_submitted(trial); });
}

void GuardedObserver::on_trial_started(const TrialRecord& trial) {
  guard("on_trial_started", [&] { observer_.on_trial_started(trial); });
}

void GuardedObserver::on_trial_ended(const TrialRecord& trial) {
  guard("on_trial_ended", [&] { observer_.on_trial_ended(trial); });
}

void GuardedObserver::on_profile(const Json& profile) {
  guard("on_profile", [&] { observer_.on_profile(profile); });
}

void GuardedObserver::on_best(const BestRecord& best) {
  guard("on_best", [&] { observer_.on_best(best); });
}

void GuardedObserver::on_closing() {
  guard("on_closing", [&] { observer_.on_closing(); });
}

}  // namespace dsat::host
