// A machine whose speed changes while a study runs.
//
// Purpose: measurements from before such a change and from after it do not compare. The phases after the search measure
//   their configurations in turns, so that those measurements compare with each other whatever the machine does. The
//   configurations that were measured more than once show whether there was a change.
// Threading: pure functions. Errors: none. Values: as in noise.h.
#ifndef DSAT_HOST_FINALS_DRIFT_H_
#define DSAT_HOST_FINALS_DRIFT_H_

#include <optional>
#include <string>
#include <vector>

#include "finals/noise.h"
#include "record/trial.h"

namespace dsat::host {

// Do the early and the late measurements of one configuration differ by more than noise explains?
bool differ_clearly(const std::vector<double>& early, const std::vector<double>& late, const Repeats& others);

// Early and late measurements together; the late ones alone if the two differ clearly.
std::vector<double> comparable(const std::vector<double>& early, const std::vector<double>& late,
                               const Repeats& others);

// How much faster the machine was at the last repeat than at the first one, as a factor. nullopt: the repeats show no
// clear change, or one that is too small to matter.
std::optional<double> drift_of(const std::vector<Trial>& trials, const std::string& metric, bool maximise);

// The summary's line; empty: no drift.
std::string drift_text(const std::vector<Trial>& trials, const std::string& metric, bool maximise);

}  // namespace dsat::host

#endif  // DSAT_HOST_FINALS_DRIFT_H_
