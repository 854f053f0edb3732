// Reads a trial's logs: its two streams, and the files with each rank's output, if there are any; and what their lines
// mean.
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
#include "outputs/printed_metric.h"
#include "outputs/shortage.h"
#include "runner/run_facts.h"

namespace dsat::host {

struct TrialLog {
  std::string name;  // in the trial's folder: "stderr.log", "rank_logs/20260101_rank3.log"
  LogStream stream = LogStream::both;
  std::optional<int> rank;         // from the name; nullopt: unknown, or all ranks
  std::vector<std::string> lines;  // printable, not empty, without the names of the trial's hosts
  std::vector<Meanings> meanings;  // of each line
  uintmax_t bytes = 0;             // size of the whole file
  bool is_cut = false;             // only its end was read
};

struct TrialLogs {
  std::vector<TrialLog> logs;      // standard error, the ranks' files by name, standard output
  std::vector<std::string> notes;  // one line for each file that could not be read

  const TrialLog* find(const char* name) const;  // nullptr: there is none
  bool has(LineMeaning meaning) const;
  std::string lines_of(LineMeaning meaning) const;  // joined
};

// A note says if the command asks its launcher for files of each rank and there are none.
TrialLogs read_trial_logs(const RunFacts& facts);

// The numbers of a pattern in rank 0's output: its own file if there is one, else what all ranks printed. A log whose
// beginning is missing has not the first steps, which say most. `option` names the pattern in the warnings.
std::vector<std::optional<double>> printed_numbers(const TrialLogs& logs, const char* option,
                                                   const std::string& pattern, std::vector<std::string>& warnings);

// Reads the numbers that the trial has printed so far for its --metric-pattern, in logs of up to kHarmlessOutputBytes.
PrintedMetric read_printed_metric(const RunFacts& facts, bool is_measured);

// `on_processors`: the device's memory is the machine's.
Shortage find_shortage(const TrialLogs& logs, bool on_processors);

}  // namespace dsat::host

#endif  // DSAT_HOST_RUNNER_TRIAL_LOGS_H_
