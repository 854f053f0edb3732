// Is --device-memory too small? A trial that completed although it needs more shows it.
//
// Purpose: searchers leave out what cannot fit into that memory, so a number that is too small hides the best.
// Threading: control thread. Units: bytes of one device. Errors: none.
#ifndef DSAT_HOST_STUDY_WATCH_MEMORY_DOUBT_H_
#define DSAT_HOST_STUDY_WATCH_MEMORY_DOUBT_H_

#include <optional>
#include <string>

#include "plan/plan.h"
#include "record/trial.h"

namespace dsat::host {

class MemoryDoubt {
 public:
  // A trial has ended. A notice for the user, once a study. `profile`: null as long as there is none.
  std::optional<std::string> add(const Trial& trial, const Plan& plan, const Json& profile);

 private:
  bool is_reported_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_MEMORY_DOUBT_H_
