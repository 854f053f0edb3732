// Which phase of a study follows which, and what a strategy of the host's own begins with.
//
// Purpose: a phase that has nothing to do is left out. All of it is a function of the plan and of the trials, so that a
//   resumed study goes the same way.
// Threading: control thread. Ownership: a view refers to its members for the time of a call.
#ifndef DSAT_HOST_STUDY_PHASES_H_
#define DSAT_HOST_STUDY_PHASES_H_

#include <optional>
#include <string>

#include "study/own_configuration.h"
#include "study/plan.h"
#include "study/trial_table.h"

namespace dsat::host {

struct PhaseView {
  const Plan& plan;
  const TrialTable& trials;
  const OwnConfiguration& own;
};

struct NextPhase {
  Phase phase;
  Json brief;  // the start event of a strategy of the host's own; null for a plugin, which gets describe_study()
};

// nullopt: the study is at its end.
std::optional<NextPhase> next_phase(Phase after, const PhaseView& view);

// Why the study has no baseline although one was wanted; empty: it has one, or none was wanted.
std::string why_no_baseline(const PhaseView& view);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_PHASES_H_
