// The trials in a study's observations.
// Threading: pure functions. Errors: an observation without trial, configuration or outcome throws dsat::Error.
#ifndef DSAT_PLUGINS_SEARCH_OBSERVATION_H_
#define DSAT_PLUGINS_SEARCH_OBSERVATION_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/searcher.h"

namespace dsat::search {

// Does a trial with this end show anything about memory or speed?
inline bool is_informative(Outcome outcome) {
  return outcome == Outcome::completed || outcome == Outcome::out_of_memory;
}

// Did the trial end through its configuration or script, so that it shows nothing about memory or speed?
inline bool is_failure(Outcome outcome) {
  return outcome == Outcome::failed || outcome == Outcome::timed_out || outcome == Outcome::invalid_config ||
         outcome == Outcome::diverged;
}

struct ObservedTrial {
  TrialId trial = kNoTrial;
  Json config;
  int64_t micro_batch = 1;
  Outcome outcome = Outcome::completed;
  Json metrics;  // an object, or null
  std::optional<double> peak_bytes;
  std::optional<double> peak_above_bytes;  // of a trial out of memory
  int64_t allocator_retries = 0;

  // nullopt: the trial did not report it.
  std::optional<double> metric(const std::string& name) const;
};

// The trials that show something about training, in their order. Left out are lost and stopped trials, the profile's
// model-information trial with its single forward pass, and configurations that no model can read: an earlier searcher
// may have asked for anything.
std::vector<ObservedTrial> training_trials(const Study& study);

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_OBSERVATION_H_
