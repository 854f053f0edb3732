// Trains the best further before it is handed back. If it fails, the next best is trained.
//
// Start event: {"candidates": [{"trial", "overrides"}], "steps", "reason"}: the best first. Names the first candidate
// that completes; none if the last one failed.
#ifndef DSAT_HOST_FINALS_VERIFICATION_H_
#define DSAT_HOST_FINALS_VERIFICATION_H_

#include "finals/host_strategy.h"

namespace dsat::host {

class Verification : public HostStrategy {
 protected:
  void start(const Json& brief) override;
  void trial_ended(const Ended& ended) override;

 private:
  void ask_next();

  Json brief_;
  size_t next_ = 0;  // candidate
};

// Does this trial of a phase after the search show that a measured configuration does not run reliably?
inline bool fails_again(const Trial& trial) {
  if (trial.phase <= Phase::searcher || trial.phase == Phase::twin || !trial.record.outcome) return false;
  const Outcome outcome = *trial.record.outcome;
  return outcome == Outcome::failed || outcome == Outcome::diverged || outcome == Outcome::out_of_memory ||
         outcome == Outcome::timed_out;
}

// A configuration that failed its verification is not handed back, even if there is no other.
inline bool fails_verification(const Trial& trial) { return trial.phase == Phase::verification && fails_again(trial); }

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_VERIFICATION_H_
