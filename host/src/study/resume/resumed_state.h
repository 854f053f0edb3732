// Reads a study back from its journal, as the state from which a resume goes on.
//
// Purpose: reads trials and events, takes back the decisions that a raised limit changes, and brings the strategy at
//   work to where it was. A searcher that takes the study over gets what has ended as observations instead.
// Threading: control thread. Errors: dsat::Error; the journal is then as it was.
#ifndef DSAT_HOST_STUDY_RESUME_RESUMED_STATE_H_
#define DSAT_HOST_STUDY_RESUME_RESUMED_STATE_H_

#include <chrono>

#include "base/event_loop.h"
#include "dsat/host/study.h"
#include "plan/plan.h"
#include "record/journal.h"
#include "study/state/plugin_log.h"
#include "study/state/study_state.h"

namespace dsat::host {

// The terms that a resume gives anew.
struct ResumeTerms {
  bool another_searcher = false;  // the plan names another one than the journal; ended trials are observations to it
  bool more_time = false;         // a time budget was given anew
  std::chrono::milliseconds time_used{0};  // of the time budget, by an earlier process of the same run
};

// Trials that were running when the host died are running in the state; the coordinator finds out what became of them.
// A simulation's clock goes on from the last moment that the journal knows.
StudyState resumed_state(Journal& journal, Plan plan, const ResumeTerms& terms, PluginLog& log, Observer& observer,
                         Loop& loop);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESUME_RESUMED_STATE_H_
