// The watch over failures: which of them end a study, and which trials get a second chance.
//
// Purpose: if a script fails in the same way whatever it is given, a search cannot help, and the study ends. If smaller
//   micro batches ran, the same failures are a ceiling that is not the memory's (a data set of 300 samples, a script's
//   own maximum), and the search goes on below it. As long as no trial has trained, a trial that passes its time limit
//   counts as a failure. If the machine failed and not the trial, the trial runs again, once. A failed trial runs again
//   as often as the study allows, unless others failed for good in the same way.
//   Two failures are alike if their last lines of stderr are equal. Their reasons are compared instead if nothing was
//   printed, if the exit status is 0, or if a checkpoint is the cause.
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_WATCH_FAILURE_WATCH_H_
#define DSAT_HOST_STUDY_WATCH_FAILURE_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// This many failures in a row that are alike, over at least two micro batches, have their cause in the script.
inline constexpr size_t kSameFailures = 3;
// The same number after a micro batch as large has trained.
inline constexpr size_t kSameFailuresOnceRan = 8;

// The text that a trial failed with. Failures with equal texts are alike.
const std::string& how_it_failed(const Trial& trial);

// Is it an error of names or syntax in Python? No stage and no value is its cause.
bool is_of_code(const Trial& failed);

// Does the script refuse train_batch_size because it is not the product of the others for its number of processes?
bool refuses_train_batch(const TrialEnd& end);

class FailureWatch {
 public:
  // `baseline_micro_batch`: the profiler falls back on it if a smaller one fails.
  explicit FailureWatch(std::optional<int64_t> baseline_micro_batch = std::nullopt)
      : baseline_micro_batch_(baseline_micro_batch) {}
  // Counts a trial whose strategy has learned of its end. Call it in the order in which strategies learn.
  void add(const Trial& trial);
  // Another searcher begins: earlier failures do not count in its row.
  void begin_row() { in_a_row_.clear(); }
  // The reason why the study ends with `last`, the trial that was added last; nullopt: the study goes on.
  // `is_suspected`: its stage or its values may be the cause (culprits.h), so others may work. `profile_goes_on`: the
  // profiler has asked for another trial.
  std::optional<std::string> reason_to_end(const Trial& last, bool is_suspected = false,
                                           bool profile_goes_on = false) const;
  // A warning if `last`, the trial that was added last, shows a ceiling; once for all failures that are alike.
  std::optional<std::string> ceiling(const Trial& last);

  // Does this trial get its second run? Each id gets one.
  bool grant_rerun(uint64_t id);
  // The ids of all trials that had a second run; the journal keeps them.
  void restore_reruns(std::set<uint64_t> ids) { reruns_ = std::move(ids); }
  // All of these ids, if there is a new one since the last call.
  std::optional<std::set<uint64_t>> take_changed_reruns();

  // Does this failed trial run again? Each id may run again `most` times. A data set that is too small gets no restart,
  // and neither does a configuration that the engine refuses.
  bool grant_restart(const TrialEnd& end, int most);
  // How often each trial has run again. The journal keeps these counts too.
  void restore_restarts(std::map<uint64_t, int> counts) { restarts_ = std::move(counts); }
  std::optional<std::map<uint64_t, int>> take_changed_restarts();

  // Forgets the trials from this id on, which are taken back: new trials with these ids run again as often as any.
  void forget_from(uint64_t id);

 private:
  struct Failure {
    uint64_t trial;
    std::string how;
    int64_t micro_batch;
    bool from_checkpoint;  // the cause: it is no ceiling, even if smaller micro batches ran
  };
  // All failures that are alike.
  struct Alike {
    std::vector<Failure> failures;
    bool is_reported = false;
  };
  // Why the study ends with this failed trial of the profile; nullopt: a larger micro batch may work.
  std::optional<std::string> why_profile_failed(const Trial& trial) const;
  // Did a micro batch run that is smaller than those of all these failures?
  bool smaller_ones_ran(const std::vector<Failure>& failures) const;

  std::optional<int64_t> baseline_micro_batch_;
  std::vector<Failure> in_a_row_;  // alike
  std::map<std::string, Alike> by_how_;
  std::set<int64_t> completed_;  // micro batches of trials that trained
  bool any_completed_ = false;   // the model-information trial counts too
  std::set<uint64_t> reruns_;
  bool reruns_changed_ = false;
  std::map<uint64_t, int> restarts_;
  bool restarts_changed_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_FAILURE_WATCH_H_
