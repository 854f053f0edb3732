// When a search stops, and how many trials it keeps open. All searchers share these rules.
// Threading: plain values. Errors: none.
#ifndef DSAT_PLUGINS_SEARCH_STOPPING_H_
#define DSAT_PLUGINS_SEARCH_STOPPING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dsat/searcher.h"

namespace dsat::search {

// The reason for an end at the trial limit.
inline constexpr const char* kTrialLimitReached = "all trials that --max-trials allows are spent";

// The number of trials that may be open at a time: the running ones, and spare ones for the host's queue.
int64_t most_open_trials(const Study& study);

// Counts trials in a row that showed nothing, and configurations in a row that were refused. Many more refusals are
// allowed, because they cost no run and clashing axes refuse a large share of a space.
struct FailureStreak {
  int64_t count = 0;        // failed, timed out, stopped or lost
  int64_t refused = 0;      // invalid_config
  std::string last_reason;  // the reason of the last failure, whatever followed it

  void add(Outcome outcome, std::string_view reason);
  // The reason to end the search; nullopt: continue.
  std::optional<std::string> reason_to_stop() const;
};

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_STOPPING_H_
