// A strategy of the host's own: it asks for trials and finishes as a plugin does, without being one.
//
// Purpose: trials that the host measures beside the search are treated as all trials are: turns, journal, replay.
//   Each strategy is a function of its start event and of the trials' ends, so it has no state that is to be saved.
// Threading: control thread. Errors: none of its own; a start event that lacks a member throws what the JSON library
//   does.
#ifndef DSAT_HOST_FINALS_HOST_STRATEGY_H_
#define DSAT_HOST_FINALS_HOST_STRATEGY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/strategy.h"
#include "record/trial.h"

namespace dsat::host {

class HostStrategy : public Strategy {
 public:
  std::vector<Op> handle(const StrategyEvent& event, RequestAnswers& answers) final;

 protected:
  struct Ended {
    uint64_t trial = 0;
    Outcome outcome = Outcome::completed;
    Json metrics;  // null unless it completed
    std::string reason;
  };
  virtual void start(const Json& brief) = 0;
  virtual void trial_ended(const Ended& ended) = 0;

  // `ask` and `finish` may be called in start and trial_ended alone. `ask` returns the trial's id, or nullopt at the
  // trial limit.
  std::optional<uint64_t> ask(const Json& overrides, const std::string& note, bool repeat = false);
  void finish(const std::string& reason, std::optional<uint64_t> best);

 private:
  RequestAnswers* answers_ = nullptr;  // while an event is handled
  std::vector<Op> ops_;
  Json metrics_;  // of the result whose exit is to follow
};

// Measures the user's own configuration once, before the search begins. The searcher finds it among the observations of
// its start, and the study goes on whatever its outcome is.
// Start event: {"overrides": {...}}: the overrides that turn the base configuration into the user's own.
class Baseline : public HostStrategy {
 protected:
  void start(const Json& brief) override;
  void trial_ended(const Ended& ended) override;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_HOST_STRATEGY_H_
