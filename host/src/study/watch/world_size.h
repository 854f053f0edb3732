// How many processes the profile trial really had, and what follows for the plan.
//
// Threading: control thread.
#ifndef DSAT_HOST_STUDY_WATCH_WORLD_SIZE_H_
#define DSAT_HOST_STUDY_WATCH_WORLD_SIZE_H_

#include <string>

#include "plan/plan.h"
#include "record/trial.h"

namespace dsat::host {

// Derives the plan's space anew if a model-information run had another data-parallel size. Returns the warning to
// log; empty: nothing has changed. Throws dsat::Error, the reason to end the study, when the plan cannot follow.
std::string follow_world_size(Plan& plan, const Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_WORLD_SIZE_H_
