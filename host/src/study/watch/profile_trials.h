// Facts about the script from the profiler's trials: how many samples its model needs at once, and how many processes
// it really has.
//
// Threading: control thread.
#ifndef DSAT_HOST_STUDY_WATCH_PROFILE_TRIALS_H_
#define DSAT_HOST_STUDY_WATCH_PROFILE_TRIALS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "record/trial.h"

namespace dsat::host {

// Some models need several samples at once: batch normalisation, experts with a least capacity.
struct LeastMicroBatch {
  int64_t works = 1;   // the smallest that has completed
  int64_t fails = 1;   // the largest below it that has failed, though not for want of memory
  std::string reason;  // why that one failed
};

// Looks at the trials of the profiler. nullopt: none failed below a micro batch that completed.
std::optional<LeastMicroBatch> least_micro_batch(const std::vector<Trial>& trials);

// Derives the plan's space anew if a model-information run had another data-parallel size. Returns the warning to
// log; empty: nothing has changed. Throws dsat::Error, the reason to end the study, when the plan cannot follow.
std::string follow_world_size(Plan& plan, const Trial& trial);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_PROFILE_TRIALS_H_
