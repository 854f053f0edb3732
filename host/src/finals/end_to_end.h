// The time of a step by the clock, compared with the engine's time, and the gain by the clock.
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FINALS_END_TO_END_H_
#define DSAT_HOST_FINALS_END_TO_END_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/host/record.h"
#include "record/trial.h"

namespace dsat::host {

// The times of one trial, without a ratio. nullopt: the trial did not measure both times.
std::optional<EndToEnd> end_to_end_of(const Trial& trial);

// The times of the best: means over all trials of its configuration. There is a ratio if the user's own configuration
// was measured in the same way and is another one. `baseline_identity`: empty if there is none.
std::optional<EndToEnd> end_to_end_of_best(const std::vector<Trial>& trials, const std::string& baseline_identity,
                                           uint64_t best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_END_TO_END_H_
