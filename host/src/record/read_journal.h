// Reads a whole study from its journal in one consistent snapshot, for commands that only show it.
// Threading: any thread, one call per journal. Errors: dsat::Error, one line that names the file.
#ifndef DSAT_HOST_RECORD_READ_JOURNAL_H_
#define DSAT_HOST_RECORD_READ_JOURNAL_H_

#include <filesystem>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

struct JournalReading {
  StudyRecord record;
  std::vector<Trial> trials;      // the record's trials, with what only the study needs
  Json plan;                      // as written, without what shown_settings removes; needs no plugin
  std::string own;                // identity of the user's own configuration; empty: unknown
  double spent_device_hours = 0;  // of all ended runs
};

JournalReading read_journal(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_READ_JOURNAL_H_
