// What the trials show of the script, reported once a study: it is the same in every trial.
//
// Purpose: a script may leave checkpoints where other trials and the real training find them, may make several engines
//   of which one is measured, and may do much beside the engine, such as waiting for data, which the engine's metrics
//   leave out.
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_WATCH_SCRIPT_WATCH_H_
#define DSAT_HOST_STUDY_WATCH_SCRIPT_WATCH_H_

#include <optional>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

class ScriptWatch {
 public:
  // Is this warning of a trial to be shown? A warning that every trial of the script has is shown once.
  bool is_shown(const std::string& warning);
  // Returns the warnings that the log of an ended trial gives reason for.
  std::vector<std::string> add(const TrialEnd& end);
  // Compares a trial's time by the clock with the engine's time. nullopt: there is nothing to report. A metric that is
  // end to end needs no such warning.
  std::optional<std::string> compare_times(const Trial& trial, const std::string& metric);

 private:
  bool is_checkpoint_reported_ = false, are_engines_reported_ = false, are_times_reported_ = false;
  bool is_disagreement_reported_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_SCRIPT_WATCH_H_
