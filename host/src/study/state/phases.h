// Which phase of a study follows which, and what a strategy of the host's own begins with.
//
// Purpose: a phase that has nothing to do is left out. The choice depends on the plan and on the trials alone, so a
//   resumed study goes the same way. The searcher leaves some trials for the phases after it (trial_limit), because a
//   gain that is measured once has no interval. It leaves one in kTrialsPerKept, kMostKept at most, and none if there
//   are fewer than kLeastToKeepOf: an interval is worth a tenth of a search, and no more.
// Threading: control thread. Ownership: a view refers to its members for the time of a call.
#ifndef DSAT_HOST_STUDY_STATE_PHASES_H_
#define DSAT_HOST_STUDY_STATE_PHASES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "plugin/strategy.h"
#include "study/state/own_configuration.h"
#include "study/state/searches.h"
#include "study/state/trial_table.h"

namespace dsat::host {

inline constexpr int kLeastToKeepOf = 16;
inline constexpr int kTrialsPerKept = 12;
inline constexpr int kMostKept = 4;

struct PhaseView {
  const Plan& plan;
  const TrialTable& trials;
  const OwnConfiguration& own;
  const std::optional<Op>& finish;  // of the strategy at work, or of the last one
  std::optional<uint64_t> usable_memory_bytes;
  const Searches& searches;
};

struct NextPhase {
  Phase phase;
  Json brief;  // the start event of a strategy of the host's own; null for a plugin, which gets describe_study()
};

// nullopt: the study is at its end.
std::optional<NextPhase> next_phase(Phase after, const PhaseView& view);

// How many trials the whole study may have while this phase asks for more.
int trial_limit(Phase phase, const PhaseView& view);

// Why the study has no baseline although one was wanted; empty: it has one, or none was wanted.
std::string why_no_baseline(const PhaseView& view);

// The reason of the searcher's finish, which the later phases hand on.
std::string why_search_ended(const std::optional<Op>& finish);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_PHASES_H_
