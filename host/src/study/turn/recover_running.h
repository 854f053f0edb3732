// The trials that ran when the host died: what became of them.
//
// Threading: control thread. Errors: what the runner throws.
#ifndef DSAT_HOST_STUDY_TURN_RECOVER_RUNNING_H_
#define DSAT_HOST_STUDY_TURN_RECOVER_RUNNING_H_

#include <vector>

#include "runner/runner.h"
#include "study/state/study_state.h"

namespace dsat::host {

// The ends of the trials that have ended all the same: their folders hold all of it. The others go on where they run,
// or wait to run again.
std::vector<TrialEnd> find_ended(StudyState& state, Runner& runner);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_TURN_RECOVER_RUNNING_H_
