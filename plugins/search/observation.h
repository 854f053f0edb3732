// The trials in a study's observations, read in one place for every searcher.
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

// Did its configuration or its script end it, with nothing shown about memory or speed?
inline bool is_failure(Outcome outcome) {
  return outcome == Outcome::failed || outcome == Outcome::timed_out || outcome == Outcome::invalid_config;
}

struct ObservedTrial {
  TrialId trial = kNoTrial;
  Json config;
  int64_t micro_batch = 1;
  Outcome outcome = Outcome::completed;
  Json metrics;  // an object, or null
  std::optional<double> peak_bytes;
  std::optional<double> peak_above_bytes;  // of one out of memory
  int64_t allocator_retries = 0;

  // nullopt where the trial reported no such number.
  std::optional<double> metric(const std::string& name) const;
};

// Those that show something about training, in their order. One that was lost or stopped shows nothing, nor does one
// that made a single forward pass (the profile's model-information trial), nor a configuration that no model can read:
// an earlier searcher may have asked for anything.
std::vector<ObservedTrial> training_trials(const Study& study);

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_OBSERVATION_H_
