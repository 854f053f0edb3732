// What the trials' logs say of the script, told once a study: it is the same in every trial.
//
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_SCRIPT_WATCH_H_
#define DSAT_HOST_STUDY_SCRIPT_WATCH_H_

#include <string>
#include <vector>

#include "runner/runner.h"

namespace dsat::host {

class ScriptWatch {
 public:
  // A trial has ended. What to tell the user.
  std::vector<std::string> add(const TrialEnd& end);

 private:
  bool is_checkpoint_told_ = false, are_engines_told_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_SCRIPT_WATCH_H_
