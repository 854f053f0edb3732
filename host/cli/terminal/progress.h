// The progress of a running study, for people: a line for each trial that ended, log messages, and the profile. On a
// terminal a picture of the search stands below them.
//
// Threading: an Observer's methods are called on the study's control thread, one call at a time. The picture is drawn
// on a thread of its own, so that a study does not wait for a terminal that is stopped (Ctrl-S). Ownership: the
// console outlives the progress, and nobody else writes to it meanwhile. Errors: none.
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

class LiveProgress : public host::Observer {
 public:
  LiveProgress(Console& console, const ProgressSettings& settings);
  // Removes the picture from the terminal.
  ~LiveProgress() override;

  // Counts the trials that ended before this program resumed the study. The estimate of the time left ignores them.
  void count_earlier(const host::StudyRecord& record);
  // Takes the metric of the user's own configuration from the journal. A trial of the profile may have run that
  // configuration, and its record does not show it. May be called on any thread.
  void take_own(const host::StudyFacts& facts);
  // Logged errors. They are printed at the end, below the line that says why the study ended.
  const std::vector<std::string>& errors() const { return errors_; }

  void on_log(Severity severity, std::string_view message) override;
  void on_trial_started(const host::TrialRecord& trial) override;
  void on_trial_ended(const host::TrialRecord& trial) override;
  void on_profile(const Json& profile) override;
  void on_best(const host::BestRecord& best) override;

  std::string status() const;  // for tests: the present status_line()

 private:
  void take_result(const host::TrialRecord& trial);
  void print(StyledLine line);
  void draw_until_done();
  void draw_frame(std::unique_lock<std::mutex>& lock, bool last);

  Console& console_;
  const bool quiet_;
  const Style style_;
  mutable std::mutex mutex_;  // guards all members below but errors_ and screen_
  SearchView view_;
  std::optional<double> best_value_;  // the best of single trials; the mean of a configuration may differ
  std::deque<StyledLine> pending_;    // lines to print above the picture
  size_t dropped_ = 0;                // lines left out because a terminal cannot show so many
  bool done_ = false;
  std::condition_variable changed_;
  std::vector<std::string> errors_;
  Screen screen_;
  std::thread drawing_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_PROGRESS_H_
