// What a user does when something died: the best that was found, written again; a damaged journal, examined and mended.
//
// Threading: plain functions; one study at a time. Errors: as Result; Status::invalid for a folder without a study and
// for a trial that does not exist. None of them runs a trial or loads a plugin.
#ifndef DSAT_HOST_RESCUE_H_
#define DSAT_HOST_RESCUE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dsat/host/record.h"
#include "dsat/host/status.h"

namespace dsat::host {

struct BestOutput {
  BestRecord best;
  std::string metric;                          // its name
  std::string command;                         // that trains with it; empty: the study has none
  std::vector<std::filesystem::path> written;  // empty: a host works on the study, and its files are current
  std::string why_not_written;                 // the folder cannot be written, say
};

// The study's best, or the configuration of one completed trial, from the journal; best_ds_config.json and the files
// beside it are written again.
Result<BestOutput> write_best(const std::filesystem::path& dir, std::optional<uint64_t> trial);

struct CheckReport {
  size_t trials = 0, events = 0;      // that are whole
  std::vector<std::string> findings;  // one line for each thing that is wrong; empty: the journal is sound
  std::vector<std::string> mended;    // what repair_study did about it
  bool sound() const { return findings.empty(); }
};

// Reads all of the journal and compares its rows. Changes nothing.
Result<CheckReport> check_study(const std::filesystem::path& dir);

// Makes a sound journal out of what can be read: events up to the last whole turn, and every trial that can be read,
// even if the event that asked for it is lost. The damaged file stays beside it as dsat.db.damaged-N. A sound journal
// is left alone.
Result<CheckReport> repair_study(const std::filesystem::path& dir);

}  // namespace dsat::host

#endif  // DSAT_HOST_RESCUE_H_
