// The watches over a study: what ended trials show of the script, the machine and the user's settings.
//
// Purpose: each watch looks at an ended trial and answers with a finding or with nothing. The lists in watches.cc have
//   all of them, in the order in which their findings count. The study acts on the findings.
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_WATCH_WATCHES_H_
#define DSAT_HOST_STUDY_WATCH_WATCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "finals/ignored_batch.h"
#include "finals/ignored_configuration.h"
#include "plan/plan.h"
#include "record/trial.h"
#include "study/watch/culprits.h"
#include "study/watch/failure_watch.h"
#include "study/watch/script_watch.h"

namespace dsat::host {

struct Finding {
  enum class Effect { warning, note, no_best };  // no_best: the study ends, since no search can find anything
  Effect effect = Effect::warning;
  std::string text;  // one line
};

// The data that a watch may look at besides the trial. The references are used during a call only.
struct WatchView {
  const Plan& plan;
  const std::vector<Trial>& trials;
  const Json& profile;  // or null
};

class Watches {
 public:
  // `own_micro_batch`: of the user's own configuration, if it gives one.
  explicit Watches(std::optional<int64_t> own_micro_batch) : failures(own_micro_batch) {}

  // A run of a trial has ended; the trial may run again.
  std::vector<Finding> after_run(const TrialEnd& end);
  // A trial has its outcome. A resumed study calls this for all trials of its journal.
  std::vector<Finding> after_end(const Trial& trial, const WatchView& view);
  // The strategy of a trial has received the trial's outcome.
  std::vector<Finding> after_delivery(const Trial& trial, const WatchView& view);

  // Counts a trial whose strategy has learned of its end. A resumed study calls this for its events, in their order.
  void count(const Trial& trial, const Plan& plan);
  // Another searcher begins.
  void begin_search();
  // Why the study ends with `last`, the trial that was counted last; nullopt: it goes on.
  std::optional<std::string> reason_to_end(const Trial& last, const WatchView& view) const;

  FailureWatch failures;  // also decides which trials run again
  Culprits culprits;
  IgnoredBatch batches;   // its warning; its proof is one of `ignored`
  IgnoredConfiguration ignored;
  ScriptWatch script;
  bool has_doubted_memory = false;
};

// Counts the trials that the searcher received after the best one. Duplicates, refused configurations and trials that
// were stopped or lost do not count. The count is 0 before a trial has measured the metric. Trials below `first` may be
// the best, but do not count.
// Threading: pure function.
int trials_since_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise, uint64_t first);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_WATCHES_H_
