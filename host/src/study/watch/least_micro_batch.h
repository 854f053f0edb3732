// What the profile shows of a model that needs several samples at once: batch normalisation, experts with a least
// capacity.
//
// Threading: pure function. Errors: none.
#ifndef DSAT_HOST_STUDY_WATCH_LEAST_MICRO_BATCH_H_
#define DSAT_HOST_STUDY_WATCH_LEAST_MICRO_BATCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

struct LeastMicroBatch {
  int64_t works = 1;   // the smallest that has completed
  int64_t fails = 1;   // the largest below it that has failed, though not for want of memory
  std::string reason;  // why that one failed
};

// Looks at the trials of the profiler. nullopt: none failed below a micro batch that completed.
std::optional<LeastMicroBatch> least_micro_batch(const std::vector<Trial>& trials);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_LEAST_MICRO_BATCH_H_
