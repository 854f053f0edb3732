// Does the script take much of a step beside the engine?
//
// Purpose: the engine's metrics leave out what the script does between the engine's calls. Where that is much, waiting
//   for data for instance, the best by such a metric trains hardly faster.
// Threading: control thread. Errors: none.
#ifndef DSAT_HOST_STUDY_SCRIPT_WATCH_H_
#define DSAT_HOST_STUDY_SCRIPT_WATCH_H_

#include <optional>
#include <string>

#include "record/trial.h"

namespace dsat::host {

class ScriptWatch {
 public:
  // A trial has ended. What to tell the user, once for a study, at its first such trial. A metric that is end to end
  // leaves nothing to tell.
  std::optional<std::string> add(const Trial& trial, const std::string& metric);

 private:
  bool is_told_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_SCRIPT_WATCH_H_
