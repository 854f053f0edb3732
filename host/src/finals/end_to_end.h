// What a step takes by the clock, beside what the engine takes of it, and the gain by the clock.
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

// One trial's times, without a ratio. nullopt: it did not measure both times.
std::optional<EndToEnd> end_to_end_of(const Trial& trial);

// The best one's times: means over all trials of its configuration. The ratio is there where the user's own
// configuration was measured so, and is another one; an empty `baseline_identity`: there is none.
std::optional<EndToEnd> end_to_end_of_best(const std::vector<Trial>& trials, const std::string& baseline_identity,
                                           uint64_t best);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_END_TO_END_H_
