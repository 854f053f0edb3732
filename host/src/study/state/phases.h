// The order of a study's phases, and the start of the host's own strategies.
//
// Purpose: a phase that has nothing to do is left out. The choice depends on the plan and on the trials alone, so a
//   resumed study goes the same way. The searcher leaves some trials for the phases after it (trial_limit), because a
//   gain that is measured once has no interval. One trial in kTrialsPerKept is left, at most kMostKept, and none if
//   there are fewer than kLeastToKeepOf: an interval is worth a tenth of a search, and no more.
// Threading: pure functions.
#ifndef DSAT_HOST_STUDY_STATE_PHASES_H_
#define DSAT_HOST_STUDY_STATE_PHASES_H_

#include <optional>
#include <string>
#include <vector>

#include "study/state/study_state.h"

namespace dsat::host {

inline constexpr int kLeastToKeepOf = 16;
inline constexpr int kTrialsPerKept = 12;
inline constexpr int kMostKept = 4;
// A study of so many trials leaves two more for a twin (finals/twin.h) and a second run of the user's own
// configuration, where that reports what a twin is held against.
inline constexpr int kLeastForTwin = 12;

struct NextPhase {
  Phase phase;
  Json brief;  // the start event of a strategy of the host's own; null for a plugin, which gets describe_study()
};

// The next phase; nullopt: the study is at its end.
std::optional<NextPhase> next_phase(const StudyState& state);

// How many trials the whole study may have while this phase asks for more.
int trial_limit(Phase phase, const StudyState& state);

// The findings for the user when the strategy at work is done. A profiler without a profile ends the study.
std::vector<Finding> findings_at_end_of_phase(const StudyState& state);

// The reason of the searcher's finish, which the later phases hand on.
std::string why_search_ended(const std::optional<Op>& finish);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_PHASES_H_
