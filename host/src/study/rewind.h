// Going back in a study's history: with a raised limit, what the old limit had shaped happens again.
//
// Threading: control thread, inside a turn of the journal. Errors: none; the journal's commit has them.
#ifndef DSAT_HOST_STUDY_REWIND_H_
#define DSAT_HOST_STUDY_REWIND_H_

#include <cstdint>
#include <set>
#include <vector>

#include "record/journal.h"
#include "record/trial.h"
#include "study/searches.h"

namespace dsat::host {

// What a resumed study is given anew.
struct RaisedLimits {
  int max_trials = 0;
  bool more_time = false;
};

// When `max_trials` is above the journal's: takes back the searcher's first answer that the old limit shaped (a refused
// request, or the finish that followed) and all later events, in `events`, in `trials` and in the journal; likewise
// the host's own end of the search, with `more_time` one by the time budget, too. Trials that those answers had asked
// for and that ran stay: asked for again, they answer at no cost. Trials of the phases after the search go. Returns the
// trials that have changed and that the journal is yet to have.
std::set<uint64_t> rewind_if_limit_raised(const RaisedLimits& limits, Searches& searches, Journal& journal,
                                          std::vector<Trial>& trials, std::vector<JournalEvent>& events);

// A trial that ran in answer to a request that is taken back: nobody waits for it.
void close_unrequested(Trial& trial);

// Its strategy is to learn of its end again. One that only the finish had stopped runs after all.
void undo_delivery(Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_REWIND_H_
