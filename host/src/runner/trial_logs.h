// All that a trial printed: its two streams, and the files that hold each rank's output where the command has some.
//
// Only the end of a file is read, up to a bound, so that a log of any length costs the same. Text in any encoding
// becomes printable UTF-8. Threading: pure but for reading files. Errors: none; what could not be read is a note.
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
  std::string name;  // below the trial's folder: "stderr.log", "rank_logs/20260101_rank3.log"
  LogStream stream = LogStream::both;
  std::optional<int> rank;         // by its name; nullopt: it holds all ranks, or does not say
  std::vector<std::string> lines;  // printable, none empty
  uintmax_t bytes = 0;             // of the whole file
  bool is_cut = false;             // only its end was read
};

struct TrialLogs {
  std::vector<TrialLog> logs;      // standard error, the ranks' files by name, standard output
  std::vector<std::string> notes;  // one line each: what could not be read
};

// `expects_rank_logs`: the command asks its launcher for such files; none is worth a note.
TrialLogs read_trial_logs(const std::filesystem::path& trial_dir, bool expects_rank_logs);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_LOGS_H_
