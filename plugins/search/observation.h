// A trial in a study's observations, read once for every searcher.
// Threading: pure functions. Errors: an observation without trial, configuration or outcome throws dsat::Error.
#ifndef DSAT_PLUGINS_SEARCH_OBSERVATION_H_
#define DSAT_PLUGINS_SEARCH_OBSERVATION_H_

#include <optional>
#include <string>

#include "dsat/searcher.h"

namespace dsat::search {

// Does a trial with this end show anything about memory or speed?
inline bool is_informative(Outcome outcome) {
  return outcome == Outcome::completed || outcome == Outcome::out_of_memory;
}

struct ObservedTrial {
  TrialId trial = kNoTrial;
  Json config;
  Outcome outcome = Outcome::completed;
  Json metrics;  // an object, or null
  std::optional<double> peak_bytes;
  std::optional<double> peak_above_bytes;  // of one out of memory
  int64_t allocator_retries = 0;

  // nullopt where the trial reported no such number.
  std::optional<double> metric(const std::string& name) const;
};

// nullopt: the trial shows nothing about training, because it was lost or stopped, or made a single forward pass (the
// profile's model-information trial).
std::optional<ObservedTrial> training_trial(const Json& observation);

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_OBSERVATION_H_
