// The summary's lines about the user's own configuration and about what was measured again.
// Threading: pure functions. Errors: none. Each text is empty or ends with a new line.
#ifndef DSAT_HOST_STUDY_RESULTS_COMPARISON_TEXT_H_
#define DSAT_HOST_STUDY_RESULTS_COMPARISON_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "record/trial.h"
#include "study/state/baseline_configuration.h"

namespace dsat::host {

// The gain of the best over the user's own configuration, or why there is none.
std::string gain_text(const Plan& plan, const std::vector<Trial>& trials, const BaselineConfiguration& own,
                      const std::optional<BestRecord>& best);

// "end to end: a step takes ...", if the script takes clearly more of a step of the best than the engine does; else "".
std::string end_to_end_text(const Plan& plan, const std::vector<Trial>& trials, const BaselineConfiguration& own,
                            const std::optional<BestRecord>& best);

// Which configurations failed when they were measured again, and how.
std::string repeats_text(const std::vector<Trial>& trials);

// Which trial trained further to verify the best, and with what outcome. If the study has ended and the best was not
// verified, the text says so. Empty without --verify.
std::string verification_text(const Plan& plan, const std::vector<Trial>& trials, const std::optional<BestRecord>& best,
                              bool has_ended);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESULTS_COMPARISON_TEXT_H_
