// Checks whether the rows of a journal fit together: events, their ops and the trials. Each row was already read alone.
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
  enum class Table { trials, events };
  Table table = Table::trials;
  uint64_t row = 0;  // a trial's id or an event's number
  std::string what;  // "it was delivered and has no outcome"
};
std::string to_string(const RowFinding& finding);

// Returns the first problem, of trials before events. `trials` are by id and `events` by number, both from 0 without a
// gap.
std::optional<RowFinding> find_misfit(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events);

// Returns the first trial whose end no event delivers any more, because the last events are lost. Trials of earlier
// searchers, before `first_trial`, have no strategy any more. The rows must fit together (find_misfit).
std::optional<RowFinding> find_lost_exit(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events,
                                         uint64_t first_trial);

// Returns the first problem of both kinds, in this order. A journal without one can be resumed.
std::optional<RowFinding> find_damage(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events,
                                      uint64_t first_trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_CHECK_ROWS_H_
