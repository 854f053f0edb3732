// Makes rows that fit together out of what can still be read of a damaged journal.
//
// Threading: pure function. Errors: none.
#ifndef DSAT_HOST_STUDY_RESCUE_REPAIR_H_
#define DSAT_HOST_STUDY_RESCUE_REPAIR_H_

#include <string>
#include <vector>

#include "record/journal.h"
#include "study/state/searches.h"

namespace dsat::host {

struct SoundRows {
  std::vector<Trial> trials;         // by id, without a gap
  std::vector<JournalEvent> events;  // by number, without a gap
  std::vector<std::string> mended;   // the repairs, a line each
};

// `trials` and `events` are what could be read, in order. Events are kept up to the first that is missing, does not
// fit, or asks for a trial that is lost. A trial that is lost keeps its id, with the outcome `lost`. Trials that ran
// stay, even if the event that asked for them is gone: a new request for the same gets their result. `searches` is
// changed to fit the events.
SoundRows sound_rows_of(std::vector<Trial> trials, std::vector<JournalEvent> events, Searches& searches);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESCUE_REPAIR_H_
