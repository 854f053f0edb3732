// Do a journal's rows fit together? Each by itself has been read; here events, their ops and the trials are compared.
//
// Threading: pure functions. Errors: none; a finding is a line for people.
#ifndef DSAT_HOST_RECORD_CHECK_ROWS_H_
#define DSAT_HOST_RECORD_CHECK_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/journal.h"

namespace dsat::host {

struct RowFinding {
  enum class Of { trial, event };
  Of of = Of::trial;
  uint64_t row = 0;  // a trial's id or an event's number
  std::string what;  // "it was delivered and has no outcome"
};
std::string to_string(const RowFinding& finding);

// The first thing that is wrong, trials before events. `trials` are by id and `events` by number, both from 0 on
// without a gap.
std::optional<RowFinding> find_misfit(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events);

// The first trial whose end its strategy has had by no event that is left: the last events are lost. The trials of
// earlier searchers, before `first_trial`, have no strategy any more. Call it for rows that fit together.
std::optional<RowFinding> find_lost_exit(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events,
                                         uint64_t first_trial);

// The first of both kinds, in this order: a journal without one can be taken up again.
std::optional<RowFinding> find_damage(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events,
                                      uint64_t first_trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_CHECK_ROWS_H_
