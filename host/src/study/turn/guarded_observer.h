// An observer whose exceptions do not reach the study.
//
// Purpose: an observer only shows or records, so its failure costs a warning and no trial. The first exception is
//   logged, in the hope that the observer's log still works. Threading: as Observer. Ownership: refers to the observer.
//   Errors: none.
#ifndef DSAT_HOST_STUDY_TURN_GUARDED_OBSERVER_H_
#define DSAT_HOST_STUDY_TURN_GUARDED_OBSERVER_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/guarded.h"
#include "dsat/host/study.h"

namespace dsat::host {

class GuardedObserver final : public Observer {
 public:
  explicit GuardedObserver(Observer& observer) : observer_(observer) {}

  void on_log(Severity severity, std::string_view message) override {
    guard("on_log", [&] { observer_.on_log(severity, message); });
  }
  void on_trial_submitted(const TrialRecord& trial) override {
    guard("on_trial_submitted", [&] { observer_.on_trial_submitted(trial); });
  }
  void on_trial_started(const TrialRecord& trial) override {
    guard("on_trial_started", [&] { observer_.on_trial_started(trial); });
  }
  void on_trial_ended(const TrialRecord& trial) override {
    guard("on_trial_ended", [&] { observer_.on_trial_ended(trial); });
  }
  void on_profile(const Json& profile) override {
    guard("on_profile", [&] { observer_.on_profile(profile); });
  }
  void on_best(const BestRecord& best) override {
    guard("on_best", [&] { observer_.on_best(best); });
  }
  void on_closing() override {
    guard("on_closing", [&] { observer_.on_closing(); });
  }

 private:
  template <class Call>
  void guard(const char* name, Call&& call) noexcept {
    try {
      call();
    } catch (...) {
      if (std::exchange(has_warned_, true)) return;
      const std::string what = status_of_caught().message();
      on_log(Severity::warning, fmt::format("the observer's {} threw, and the study goes on: {}", name, what));
    }
  }

  Observer& observer_;
  bool has_warned_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_GUARDED_OBSERVER_H_
