// Ending a search that has stopped finding anything better.
#ifndef DSAT_HOST_STUDY_WATCH_TRIALS_SINCE_BEST_H_
#define DSAT_HOST_STUDY_WATCH_TRIALS_SINCE_BEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// Trials of the searcher that were delivered to it after the one that measured best. Duplicates, refused
// configurations and trials that measured nothing for want of time do not count; before any trial measured the metric
// there is nothing to compare with, and the answer is 0. Trials below `first` are compared with and do not count.
// Threading: pure function.
int trials_since_best(const std::vector<Trial>& trials, const std::string& metric, bool maximise, uint64_t first);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_TRIALS_SINCE_BEST_H_
