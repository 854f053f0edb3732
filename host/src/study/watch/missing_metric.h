// Does the script report the metric that the search is to improve?
//
// Threading: pure function. Errors: none.
#ifndef DSAT_HOST_STUDY_WATCH_MISSING_METRIC_H_
#define DSAT_HOST_STUDY_WATCH_MISSING_METRIC_H_

#include <optional>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// Why a search cannot find a best: one or two trials have measured and gave no such metric. The text names the metric
// to ask for instead. The model-information trial measures nothing. nullopt: the metric may still come.
std::optional<std::string> why_metric_is_missing(const std::vector<Trial>& trials, const std::string& metric);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_WATCH_MISSING_METRIC_H_
