// What a person sees while a study runs: on a terminal one line that is rewritten in place, elsewhere a line a trial;
// log messages and the profile in both.
//
// Threading: called on the study's control thread, one call at a time. Ownership: the console outlives it. Errors:
// none.
#ifndef DSAT_CLI_TERMINAL_PROGRESS_H_
#define DSAT_CLI_TERMINAL_PROGRESS_H_

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dsat/host/study.h"
#include "terminal/console.h"

namespace dsat::cli {

struct ProgressSettings {
  std::string metric;  // canonical name
  int max_trials = 0;  // 0: not known
  std::optional<std::chrono::milliseconds> time_budget;
  bool quiet = false;
};

// Turns a profile (docs/profile.md) into lines about the model and what of it fits.
std::vector<std::string> profile_lines(const Json& profile);

class Progress : public host::Observer {
 public:
  using Clock = std::chrono::steady_clock;

  Progress(Console& console, ProgressSettings settings);
  ~Progress() override { clear(); }

  // Trials that ended before this program took the study up count, but show nothing about how long one takes.
  void count_earlier(const host::StudyRecord& record);
  // Leaves the terminal's line empty for what comes next.
  void clear();
  // Logged errors, kept for the report: standard error begins with what ended the study.
  const std::vector<std::string>& errors() const { return errors_; }

  void on_log(Severity severity, std::string_view message) override;
  void on_trial_started(const host::TrialRecord& trial) override;
  void on_trial_ended(const host::TrialRecord& trial) override;
  void on_profile(const Json& profile) override;
  void on_best(const host::BestRecord& best) override;

  std::string status_line() const;  // public for tests
  static std::string trial_line(const host::TrialRecord& trial, const std::string& metric);

 private:
  void print(const std::string& line);
  void redraw();
  std::optional<std::chrono::milliseconds> time_left() const;

  Console& console_;
  ProgressSettings settings_;
  const bool terminal_;
  const Clock::time_point begin_ = Clock::now();
  int earlier_ = 0, ended_ = 0;
  std::set<uint64_t> running_;  // by id: a trial may start more than once
  std::string best_;
  std::vector<std::string> errors_;
  bool drawn_ = false;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_PROGRESS_H_
