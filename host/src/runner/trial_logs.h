// Reads a trial's logs: its two streams, and the files with each rank's output, if there are any.
//
// Only the end of a file is read, so a long log costs no more. Text in any encoding becomes printable UTF-8. Threading:
// pure except for reading files. Errors: none; a file that could not be read gets a note.
#ifndef DSAT_HOST_RUNNER_TRIAL_LOGS_H_
#define DSAT_HOST_RUNNER_TRIAL_LOGS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "outputs/log_lines.h"

namespace dsat::host {

struct TrialLog {
  std::string name;  // in the trial's folder: "stderr.log", "rank_logs/20260101_rank3.log"
  LogStream stream = LogStream::both;
  std::optional<int> rank;         // from the name; nullopt: unknown, or all ranks
  std::vector<std::string> lines;  // printable, not empty
  uintmax_t bytes = 0;             // size of the whole file
  bool is_cut = false;             // only its end was read
};

struct TrialLogs {
  std::vector<TrialLog> logs;      // standard error, the ranks' files by name, standard output
  std::vector<std::string> notes;  // one line for each file that could not be read
};

// `expects_rank_logs`: the command asks its launcher for such files, so a note says if there are none.
TrialLogs read_trial_logs(const std::filesystem::path& trial_dir, bool expects_rank_logs);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_LOGS_H_
