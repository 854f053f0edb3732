// The state of a study: the turns change it, and study/resume/resumed_state.h reads it back from the journal.
//
// Threading: a plain value, used on the control thread. Ownership: it owns the strategy at work; the plugin log that
// the strategy writes to must outlive it.
#ifndef DSAT_HOST_STUDY_STATE_STUDY_STATE_H_
#define DSAT_HOST_STUDY_STATE_STUDY_STATE_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/device_memory.h"
#include "plan/plan.h"
#include "record/journal.h"
#include "record/trial.h"
#include "study/state/baseline_configuration.h"
#include "study/state/best.h"
#include "study/state/searches.h"
#include "study/state/strategy_run.h"
#include "study/state/trial_table.h"
#include "study/watch/watches.h"

namespace dsat::host {

// How a study ends.
struct Ending {
  StudyStatus status;
  std::string reason;
  bool resumable = false;  // trials that were running go on when the study is resumed
};

struct StudyState {
  // The state of a study that has not begun.
  explicit StudyState(Plan given);

  Plan plan;  // with the sizes and the space that the trials have shown
  TrialTable trials;
  Searches searches;
  StrategyRun run;  // the strategy at work
  BestSoFar best;
  BaselineConfiguration baseline;
  Json profile;  // or null
  DeviceMemory device_memory;
  Watches watches;
  double spent_device_hours = 0;  // of every run of every trial, also of those that ran again or were taken back
  bool are_hours_changed = true;
  std::chrono::milliseconds time_used{0};  // of the time budget, by an earlier process of the same run
  // The trials' files give train_batch_size. A script may refuse it: zero.Init reads the file before the processes know
  // of each other, and the number is wrong for one process.
  bool has_train_batch = true;
  bool is_train_batch_changed = false;
  bool reuses_results = false;   // the journal was repaired: kTrustsFolders
  std::optional<Ending> ending;  // nullopt: it goes on

  // The device memory for the best configuration; nullopt without a margin, since a completed trial did fit.
  std::optional<uint64_t> memory_for_best() const;
  // Adds the cost of the trial's run that ended at `ended_at`.
  void add_cost(uint64_t id, const std::string& ended_at);
  // Does this trial, whose run has ended, run again? A failure of the machine gives it a second run, another failure as
  // many as the plan allows. A spent budget gives none.
  bool grant_repeat(const TrialEnd& end);
  // Why a trial whose run ends in this way learns something else than the user's own configuration; empty: nothing
  // shows that.
  std::string why_diverged(const TrialEnd& end) const;
  // Learns from a trial with an outcome. The plan follows the trial's number of processes.
  std::vector<Finding> learn_from(const Trial& trial);
  // Derives the space of the search, without the micro batches that the profile has shown to be too small.
  void derive_search_space();
  // Writes the rows of the journal that differ from this state.
  void put_changes(Journal& journal);
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_STUDY_STATE_H_
