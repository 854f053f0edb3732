// Makes rows that fit together of what a damaged journal still gives.
//
// Threading: pure function. Errors: none.
#ifndef DSAT_HOST_STUDY_REPAIR_H_
#define DSAT_HOST_STUDY_REPAIR_H_

#include <string>
#include <vector>

#include "record/journal.h"
#include "study/searches.h"

namespace dsat::host {

struct SoundRows {
  std::vector<Trial> trials;         // by id, without a gap
  std::vector<JournalEvent> events;  // by number, without a gap
  std::vector<std::string> mended;   // what was done, a line each
};

// `trials` and `events` are what could be read, in order. Events are kept up to the first that is missing, does not
// fit, or asks for a trial that is lost. A trial that is lost keeps its id, as `lost`. Trials that ran stay, whatever
// asked for them: requested again, they answer. `searches` follows.
SoundRows sound_rows_of(std::vector<Trial> trials, std::vector<JournalEvent> events, Searches& searches);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_REPAIR_H_
