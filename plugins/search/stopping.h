// When a search stops, and how many trials it keeps open: rules that all searchers share.
// Threading: plain values. Errors: none.
#ifndef DSAT_PLUGINS_SEARCH_STOPPING_H_
#define DSAT_PLUGINS_SEARCH_STOPPING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dsat/searcher.h"

namespace dsat::search {

// Why a search ends that was allowed no further trial.
inline constexpr const char* kTrialLimitReached = "all trials that --max-trials allows are spent";

// How many trials may be open at a time: those that run, and spare ones that the host wants in its queue.
int64_t most_open_trials(const Study& study);

// Trials in a row that ran and showed nothing, and configurations in a row that were refused. A refusal costs no run
// and says nothing of the script, so many more of them are borne: axes that clash refuse a large share of a space.
struct FailureStreak {
  int64_t count = 0;        // failed, timed out, stopped or lost
  int64_t refused = 0;      // invalid_config
  std::string last_reason;  // of the last one, whatever came after it

  void add(Outcome outcome, std::string_view reason);
  // Nothing but failures comes back: nullopt while there is hope.
  std::optional<std::string> reason_to_stop() const;
};

}  // namespace dsat::search

#endif  // DSAT_PLUGINS_SEARCH_STOPPING_H_
