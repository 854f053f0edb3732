// What a person sees while a study runs: on a terminal a picture below the lines of the trials that ended, elsewhere
// the lines alone; log messages and the profile in both.
//
// Threading: an Observer's methods are called on the study's control thread, one call at a time. The picture is drawn
// on a thread of its own, so that a terminal that takes nothing (Ctrl-S) keeps no study waiting. Ownership: the console
// outlives it, and nobody else writes to it in the meantime. Errors: none.
#ifndef DSAT_CLI_TERMINAL_PROGRESS_H_
#define DSAT_CLI_TERMINAL_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dsat/host/facts.h"
#include "dsat/host/study.h"
#include "terminal/console.h"
#include "terminal/screen.h"
#include "terminal/search_view.h"
#include "terminal/style.h"

namespace dsat::cli {

struct ProgressSettings {
  std::string metric;  // canonical name
  bool maximise = true;
  int max_trials = 0;  // 0: not known
  std::optional<std::chrono::milliseconds> time_budget;
  bool quiet = false;
  bool verbose = false;
};

class Progress : public host::Observer {
 public:
  Progress(Console& console, const ProgressSettings& settings);
  // Takes the picture off the terminal.
  ~Progress() override;

  // Trials that ended before this program took the study up count, but show nothing about how long one takes.
  void count_earlier(const host::StudyRecord& record);
  // What the journal tells of the user's own configuration: a trial of the profile may have measured it, and no trial
  // says so of itself. May be called on any thread.
  void take_own(const host::StudyFacts& facts);
  // Logged errors, kept for the report: standard error begins with what ended the study.
  const std::vector<std::string>& errors() const { return errors_; }

  void on_log(Severity severity, std::string_view message) override;
  void on_trial_started(const host::TrialRecord& trial) override;
  void on_trial_ended(const host::TrialRecord& trial) override;
  void on_profile(const Json& profile) override;
  void on_best(const host::BestRecord& best) override;

  std::string status() const;  // for tests: status_line() of now

 private:
  void take_result(const host::TrialRecord& trial);
  void print(StyledLine line);
  void draw_until_done();
  void draw_frame(std::unique_lock<std::mutex>& lock, bool last);

  Console& console_;
  const bool quiet_;
  const Style style_;
  mutable std::mutex mutex_;  // of all below but errors_ and screen_
  SearchView view_;
  std::optional<double> best_value_;  // of the trials' own values: a configuration's mean may be another one
  std::deque<StyledLine> pending_;    // lines for above the picture
  size_t dropped_ = 0;                // of them: more came than a terminal can show
  bool done_ = false;
  std::condition_variable changed_;
  std::vector<std::string> errors_;
  Screen screen_;
  std::thread drawing_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_PROGRESS_H_
