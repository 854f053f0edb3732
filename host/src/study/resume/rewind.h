// Going back in a study's history: with a raised limit, the decisions that the old limit shaped are made again.
//
// Threading: control thread, inside a turn of the journal. Errors: none; the journal's commit has them.
#ifndef DSAT_HOST_STUDY_RESUME_REWIND_H_
#define DSAT_HOST_STUDY_RESUME_REWIND_H_

#include <cstdint>
#include <set>
#include <vector>

#include "record/journal.h"
#include "record/trial.h"
#include "study/state/searches.h"

namespace dsat::host {

// If `max_trials` is above the journal's, the function takes back the searcher's first answer that the old limit shaped
// (a refused request, or the finish that followed) and all later events: in `events`, in `trials` and in the journal.
// The host's own end of the search is taken back in the same way; if the time budget was the reason, `more_time` is
// enough. Trials that those answers asked for and that ran stay: a new request for the same configuration gets their
// result at no cost. Trials of the phases after the search are removed. Returns the trials that have changed; the
// caller writes them to the journal.
std::set<uint64_t> rewind_if_limit_raised(int max_trials, bool more_time, Searches& searches, Journal& journal,
                                          std::vector<Trial>& trials, std::vector<JournalEvent>& events);

// Closes a trial whose request is taken back: no strategy waits for it any more.
void close_unrequested(Trial& trial);

// The trial's end is delivered to its strategy again. A trial that only the finish had stopped runs after all. `trials`
// holds the original of a duplicate; call undo_delivery for the original first.
void undo_delivery(Trial& trial, const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESUME_REWIND_H_
