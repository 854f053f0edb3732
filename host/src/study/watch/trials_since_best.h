// Ending a search that has stopped finding anything better.
#ifndef DSAT_HOST_STUDY_WATCH_TRIALS_SINCE_BEST_H_
#define DSAT_HOST_STUDY_WATCH_TRIALS_SINCE_BEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// Counts the trials that the searcher received after the best one. Duplicates, refused configurations and trials that
// were stopped or lost do not count. The count is 0 before a trial has measured the metric. Trials below `first` may be
// the best, but do not count.
// Threading: pure function.
int trials_since_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise, uint64_t first);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_TRIALS_SINCE_BEST_H_
