// Finds broken slots: trials fail on them and complete on others.
//
// On a broken device trials fail at once, so it is soon free again and would get trial after trial. A failed trial that
// runs again runs elsewhere, and the slots where it failed wait for its end. If it completes, these slots are suspected
// until a trial completes on them. Slots that three trials made suspect get no more trials.
// Threading: control thread. Ownership: plain values. Errors: none.
#ifndef DSAT_HOST_RUNNER_SLOT_WATCH_H_
#define DSAT_HOST_RUNNER_SLOT_WATCH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runner/runner.h"
#include "slots/slot_pool.h"

namespace dsat::host {

class SlotWatch {
 public:
  struct Finding {
    std::vector<Slot> restored;  // waited for this end, and get trials again
    std::vector<Slot> broken;    // waited for this end, and get no more trials
    std::string notice;          // about the broken slots; empty: none
  };
  // A trial has ended on these slots. An infrastructure failure counts only if `host_failed`: a port that was taken
  // says nothing about a slot, but a host that cannot be reached does.
  Finding add(const TrialEnd& end, const std::vector<Slot>& slots, bool host_failed = false);

  // Returns the slots where the trial's last run failed; empty: it did not fail.
  std::vector<Slot> failed_on(uint64_t id) const;
  // Makes these slots wait until the trial has ended once more.
  void await_rerun(uint64_t id) { failures_.at(id).is_awaited = true; }
  // Returns whether one of these slots waits for a trial.
  bool any_awaited(const std::vector<Slot>& slots) const;

 private:
  struct Failure {
    std::vector<Slot> slots;
    std::string reason;
    bool is_awaited = false;
  };

  std::map<uint64_t, Failure> failures_;
  std::map<std::string, std::set<uint64_t>> suspected_by_;  // trials by the slot's name
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_SLOT_WATCH_H_
