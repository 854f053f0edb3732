// Functions for a study whose host died: write the best again, examine a journal, mend a damaged journal.
//
// No function here runs a trial or loads a plugin. Threading: plain functions; one study at a time. Errors: Result;
// Status::invalid for a folder without a study and for a trial that does not exist.
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
  std::string metric;                          // the name of the metric
  std::string command;                         // trains with the best; empty: the study has no command
  std::vector<std::filesystem::path> written;  // empty: the study is running, and its files are current
  std::string why_not_written;                 // for example, the folder is read-only
};

// Reads the study's best, or the configuration of one completed trial, from the journal. Writes best_ds_config.json and
// the files beside it again, unless another user controls the folder.
Result<BestOutput> write_best(const std::filesystem::path& dir, std::optional<uint64_t> trial);

struct CheckReport {
  size_t trials = 0, events = 0;      // numbers of sound ones
  std::vector<std::string> findings;  // one line for each damage; empty: the journal is sound
  std::vector<std::string> mended;    // one line for each repair
  bool sound() const { return findings.empty(); }
};

// Reads the whole journal and compares its rows. Changes nothing.
Result<CheckReport> check_study(const std::filesystem::path& dir);

// Makes a sound journal of the rows that can be read: the events up to the last whole turn, and every trial, even if
// the event of its request is lost. The damaged file stays beside it as dsat.db.damaged-N. A sound journal is left
// alone. `trust_folder`: another user may have made the folder, or can write to it.
Result<CheckReport> repair_study(const std::filesystem::path& dir, bool trust_folder = false);

}  // namespace dsat::host

#endif  // DSAT_HOST_RESCUE_H_
