// The files of a run directory that people read: the best configuration, its metrics, its command, the summary.
//
// Written atomically, at most once a second while the study runs. Threading: control thread. Errors: dsat::Error when a
// file cannot be written.
#ifndef DSAT_HOST_STUDY_RESULTS_RESULTS_H_
#define DSAT_HOST_STUDY_RESULTS_RESULTS_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "record/trial.h"
#include "study/state/baseline_configuration.h"

namespace dsat::host {

// The contents of the files. The references are used during a call only.
struct ResultsView {
  const Plan& plan;
  const std::vector<Trial>& trials;
  const Json& profile;
  const std::optional<BestRecord>& best;
  std::optional<uint64_t> device_memory_bytes;
  std::string reason;                          // why the study ended; empty: it runs
  const BaselineConfiguration* own = nullptr;  // the user's; nullptr: it is left out
};

// The printed table: per stage trials, best metric, best configuration, estimated and measured memory.
std::string summary_text(const ResultsView& view);

class Results {
 public:
  // `command_line` gives the text of best_cmd.txt for a trial's configuration; empty: there is no such file.
  using CommandLine = std::function<std::string(const Json& config)>;
  explicit Results(CommandLine command_line) : command_line_(std::move(command_line)) {}

  // Writes the files that have changed; a study without a folder has none. A new best is written at once. If there is
  // no best any more, its files are removed. The summary is written at once if `now`, otherwise not before `due`.
  void write(const ResultsView& view, bool now);
  // Writes the files of the best alone. Returns the files that it wrote.
  std::vector<std::filesystem::path> write_best(const ResultsView& view);
  // The time at which the summary may be written next; nullopt: it is up to date.
  std::optional<std::chrono::steady_clock::time_point> due() const;

 private:
  void remove_best(const std::filesystem::path& dir);
  bool write_changed(const std::filesystem::path& file, std::string text);
  CommandLine command_line_;
  std::chrono::steady_clock::time_point next_{};
  bool is_behind_ = false;
  std::optional<BestRecord> best_written_;
  std::map<std::string, std::string> written_;  // what each file holds: an unchanged one is left alone
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_RESULTS_RESULTS_H_
