// The check of the best: does it learn what the user's own configuration learns?
//
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_FINALS_TWIN_CHECK_H_
#define DSAT_HOST_FINALS_TWIN_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/host/record.h"
#include "finals/agreement.h"
#include "record/trial.h"

namespace dsat::host {

// The runs of the user's own configuration that reported losses or gradient norms, by id.
std::vector<const Trial*> runs_with_curve(const std::vector<Trial>& trials, const std::string& own);

// The band of these runs for a twin with this configuration. It is wider where there is only one run, and where the
// twin's micro batch is another one. Only the first step is compared if the twin learns in another way on purpose: with
// another optimizer, schedule or clipping.
Band band_for(const std::vector<const Trial*>& runs, const Json& config);

// Is anything in the runs of the user's own configuration a number, and the same twice?
bool can_be_compared(const std::vector<const Trial*>& runs);

// nullopt: there is no best, or a simulation that gives no losses. `is_wanted`: false with --no-twin.
std::optional<TwinCheck> check_of_best(const std::vector<Trial>& trials, const std::string& own,
                                       std::optional<uint64_t> best, bool is_wanted, bool is_simulated);

// A line for each twin that has diverged, in the order of trials.
std::vector<std::string> divergences(const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_TWIN_CHECK_H_
