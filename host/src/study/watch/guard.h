// The guard: does an ended trial learn what the user's own configuration learns?
//
// Purpose: a configuration that drops gradients is fast. Each trial that reports losses or gradient norms is held
// against
//   the first run of the user's own configuration: values that are not finite, a loss that is stuck, a norm that the
//   batch does not explain. A twin (finals/twin.h) is held against all runs of the own, step by step. What the own
//   configuration itself shows is never held against a trial.
// Threading: pure functions. Errors: none. Cost: one look at the trials for each trial that reports something.
#ifndef DSAT_HOST_STUDY_WATCH_GUARD_H_
#define DSAT_HOST_STUDY_WATCH_GUARD_H_

#include <optional>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// Why a run that completed has diverged; empty: nothing shows that. `own`: the identity of the user's own
// configuration; empty: there is none, and only another trial with finite values can show that the script has them.
std::string why_diverged(const Trial& trial, const TrialEnd& end, const std::vector<Trial>& trials,
                         const std::string& own);

// One line if the first run of the user's own configuration is no reference; nullopt: it is one.
std::optional<std::string> why_no_reference(const Trial& trial, const std::vector<Trial>& trials,
                                            const std::string& own);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_GUARD_H_
