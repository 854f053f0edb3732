// Brings a strategy back to where the journal left it.
//
// Purpose: the strategy gets its last saved state and then the later events again. Its requests get the answers that
//   they got the first time, and its ops must be the same as the first time, byte for byte.
// Threading: control thread.
// Errors: dsat::Error, DSAT_INTERNAL: "replay_mismatch: ...", or the plugin's own message. A saved state that cannot
//   be used is a warning, and all events are replayed.
#ifndef DSAT_HOST_STUDY_RESUME_REPLAY_H_
#define DSAT_HOST_STUDY_RESUME_REPLAY_H_

#include <cstdint>
#include <vector>

#include "dsat/host/study.h"
#include "plan/plan.h"
#include "record/journal.h"
#include "study/state/strategy_run.h"

namespace dsat::host {

// `events`: all that the strategy has had, at least one. `first_id`: the id of its first trial. `max_trials`: the limit
// of the whole study while it asks.
StrategyRun replay_strategy(const Plan& plan, const std::vector<JournalEvent>& events, uint64_t first_id,
                            int max_trials, Journal& journal, PluginLog& log, Observer& observer);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESUME_REPLAY_H_
