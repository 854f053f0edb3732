// The best configuration with fewer changes to the user's own.
//
// Purpose: a searcher hands back whole configurations, and most of their keys do nothing. A key that has no clear
// effect
//   is a risk in the next version of the engine, and a question that nobody can answer. So keys go back to the user's
//   value, or out, as long as all of that together is expected to cost less than kTolerance (finals/effects.h). The
//   finals measure the result (finals/finals.h).
// Threading: pure functions. Errors: none.
#ifndef DSAT_HOST_STUDY_STATE_SIMPLIFY_H_
#define DSAT_HOST_STUDY_STATE_SIMPLIFY_H_

#include <string>
#include <vector>

#include "finals/simpler.h"
#include "study/state/study_state.h"

namespace dsat::host {

// The configurations that the finals measure in place of the trial `best`: the simplest one first, then one that puts
// back only keys that are expected to cost next to nothing. Empty: nothing can be put back.
std::vector<Simpler> simpler_than(const StudyState& state, uint64_t best);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_SIMPLIFY_H_
