// A whole study out of its journal, in one consistent snapshot, for those who only look at it.
//
// Threading: any thread, one call a journal. Errors: dsat::Error, one line that names the file.
#ifndef DSAT_HOST_RECORD_READ_JOURNAL_H_
#define DSAT_HOST_RECORD_READ_JOURNAL_H_

#include <filesystem>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

struct JournalReading {
  StudyRecord record;
  std::vector<Trial> trials;      // those of the record, with what only the study needs
  Json plan;                      // as written, but for what shown_settings leaves out; no plugin is needed to read it
  std::string own;                // the identity of the user's own configuration; empty: unknown
  double spent_device_hours = 0;  // of all runs that have ended
};

JournalReading read_journal(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_READ_JOURNAL_H_
