// The watch over failures: what a study need not go on with, and what only deserves a second chance.
//
// Purpose: a profile trial that fails, and a script that fails in the same way whatever it is given, are nothing that a
//   search can mend: the study ends. A failure of the machine is no failure of the trial: it runs again, once.
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_FAILURE_WATCH_H_
#define DSAT_HOST_STUDY_FAILURE_WATCH_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// So many consecutive failures with one last line, over at least two micro batches, are the script's own.
inline constexpr size_t kSameFailures = 3;

class FailureWatch {
 public:
  // Counts a trial whose strategy has learned of its end; in that order.
  void add(const Trial& trial);
  // Why the study ends with this trial, the last one added; nullopt: it goes on.
  std::optional<std::string> reason_to_end(const Trial& last) const;

  // Does this trial get its second run? Once for each id.
  bool grant_rerun(uint64_t id);
  // The ids of all trials that had one; the journal keeps them.
  void restore_reruns(std::set<uint64_t> ids) { reruns_ = std::move(ids); }
  // Those ids if there is a new one since the last call.
  std::optional<std::set<uint64_t>> take_changed_reruns();

 private:
  struct Failure {
    uint64_t trial;
    std::string last_line;
    int64_t micro_batch;
  };
  std::vector<Failure> in_a_row_;  // with the same last line
  std::set<uint64_t> reruns_;
  bool reruns_changed_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_FAILURE_WATCH_H_
