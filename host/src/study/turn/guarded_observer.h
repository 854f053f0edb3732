// An observer whose exceptions do not reach the study.
//
// Purpose: an observer only shows or records, so its failure costs a warning and no trial. Threading: as Observer.
//   Ownership: refers to the observer. Errors: none.
#ifndef DSAT_HOST_STUDY_TURN_GUARDED_OBSERVER_H_
#define DSAT_HOST_STUDY_TURN_GUARDED_OBSERVER_H_

#include <string>
#include <string_view>

#include "dsat/host/study.h"

namespace dsat::host {

class GuardedObserver final : public Observer {
 public:
  explicit GuardedObserver(Observer& observer) : observer_(observer) {}

  void on_log(Severity severity, std::string_view message) override;
  void on_trial_submitted(const TrialRecord& trial) override;
  void on_trial_started(const TrialRecord& trial) override;
  void on_trial_ended(const TrialRecord& trial) override;
  void on_profile(const Json& profile) override;
  void on_best(const BestRecord& best) override;
  void on_closing() override;

 private:
  template <class Call>
  void guard(const char* name, Call&& call) noexcept;
  void warn_once(const char* name, const std::string& what);

  Observer& observer_;
  bool has_warned_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_GUARDED_OBSERVER_H_
