// Counts failures in a row, and ends a search when a searcher's choices cannot explain them: then the user's script is
// broken, or DeepSpeed accepts little of the space.
#include "search/stopping.h"

#include <fmt/format.h>

#include <algorithm>

#include "search/observation.h"

namespace dsat::search {

int64_t most_open_trials(const Study& study) {
  return std::max({int64_t{1}, study.limits.max_concurrent_trials, study.limits.open_trials});
}

void FailureStreak::add(Outcome outcome, std::string_view reason) {
  if (outcome == Outcome::invalid_config) {
    ++refused;
  } else {
    refused = 0;
    count = is_informative(outcome) ? 0 : count + 1;
  }
  if (!is_informative(outcome)) last_reason = reason;
}

std::optional<std::string> FailureStreak::reason_to_stop() const {
  constexpr int64_t kMostFailed = 64, kMostRefused = 512;
  if (count >= kMostFailed) return fmt::format("{} trials in a row failed, the last with: {}", count, last_reason);
  if (refused < kMostRefused) return std::nullopt;
  return fmt::format("{} configurations in a row were refused, the last with: {}", refused, last_reason);
}

}  // namespace dsat::search
