// The outcomes of a trial, and their names in journals, `show --json`, reports and observations.
//
// Threading: pure functions. Errors: an unknown name is nullopt.
#ifndef DSAT_OUTCOME_H_
#define DSAT_OUTCOME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dsat/abi.h"

namespace dsat {

enum class Outcome : int32_t {
  completed = DSAT_TRIAL_COMPLETED,
  out_of_memory = DSAT_TRIAL_OUT_OF_MEMORY,
  failed = DSAT_TRIAL_FAILED,
  timed_out = DSAT_TRIAL_TIMED_OUT,
  invalid_config = DSAT_TRIAL_INVALID_CONFIG,
  stopped = DSAT_TRIAL_STOPPED,
  lost = DSAT_TRIAL_LOST,
  diverged = DSAT_TRIAL_DIVERGED,
};

// The names by the value of dsat_trial_outcome. Tables list outcomes in this order.
inline constexpr std::array<const char*, 8> kOutcomeNames = {"completed",      "out_of_memory", "failed", "timed_out",
                                                             "invalid_config", "stopped",       "lost",   "diverged"};

// A newer host may send an outcome that this header does not know. It counts as failed (dsat/abi.h).
inline Outcome outcome_of(dsat_trial_outcome value) {
  const bool known = value >= 0 && static_cast<size_t>(value) < kOutcomeNames.size();
  return known ? static_cast<Outcome>(value) : Outcome::failed;
}

inline const char* outcome_name(Outcome outcome) {
  return kOutcomeNames[static_cast<size_t>(outcome_of(static_cast<dsat_trial_outcome>(outcome)))];
}

inline std::optional<Outcome> outcome_named(std::string_view name) {
  for (size_t i = 0; i < kOutcomeNames.size(); ++i) {
    if (name == kOutcomeNames[i]) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

}  // namespace dsat

#endif  // DSAT_OUTCOME_H_
