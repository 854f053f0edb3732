// The trials that a strategy asks for in the course of one event.
//
// Purpose: decides on each request (limits, duplicates, validity, culprits) and keeps the requested trials. The study
// takes them
//   if the event is accepted. If the event fails, they are dropped with this object.
// Threading: control thread. Ownership: refers to its arguments for the time of the event.
#ifndef DSAT_HOST_STUDY_TURN_NEW_TRIALS_H_
#define DSAT_HOST_STUDY_TURN_NEW_TRIALS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.h"
#include "plan/plan.h"
#include "plugin/strategy.h"
#include "study/state/trial_table.h"
#include "study/watch/culprits.h"

namespace dsat::host {

// After this many duplicate or invalid requests in a row the space counts as exhausted.
inline constexpr int kFruitlessRequests = 1000;

class NewTrials : public RequestAnswers {
 public:
  // `baseline`: the identity of the user's own configuration; empty: there is none.
  // `max_trials`: the limit of the whole study while this phase asks.
  NewTrials(const Plan& plan, const TrialTable& trials, const Culprits& culprits, Phase phase, int max_trials,
            const std::string& baseline, const Loop& loop)
      : plan_(plan),
        trials_(trials),
        culprits_(culprits),
        phase_(phase),
        max_trials_(max_trials),
        baseline_(baseline),
        loop_(loop) {}

  std::optional<uint64_t> create_trial(const Op& request) override;
  uint64_t next_id() const override { return trials_.size() + asked_.size(); }
  void begin_again() override;

  // In the order of their ids.
  std::vector<Trial> take() { return std::move(asked_); }

 private:
  std::optional<uint64_t> answering(const std::string& identity) const;
  Trial trial_of(const Op& request) const;

  const Plan& plan_;
  const TrialTable& trials_;
  const Culprits& culprits_;
  const Phase phase_;
  const int max_trials_;
  const std::string& baseline_;
  const Loop& loop_;
  std::vector<Trial> asked_;
  std::unordered_map<std::string, uint64_t> first_of_;  // by identity: the first of asked_ that can answer for it
  int counted_ = 0;                                     // of asked_, against the trial limit
  int fruitless_ = 0;                                   // how many at the end of asked_ cost no run
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_NEW_TRIALS_H_
