// Computes the mean metrics of each configuration from its trials.
// Threading: a pure function. Errors: none. Units: the metric's own, bytes.
#ifndef DSAT_HOST_RECORD_MEASURED_H_
#define DSAT_HOST_RECORD_MEASURED_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/trial.h"

namespace dsat::host {

// Whether values differ only by rounding, since the mean of equal numbers may differ from them.
inline bool is_tie(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

// The measured trials of one configuration; its metrics are means.
struct MeasuredConfiguration {
  uint64_t trial = 0;  // the first trial
  int count = 0;
  double metric = 0;
  Json metrics;
  std::optional<uint64_t> peak_bytes;  // the highest peak
};

// Uses every completed trial with the metric, of whatever kind; ordered by first trial.
std::vector<MeasuredConfiguration> measured_configurations(const std::vector<Trial>& trials, const std::string& metric);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_MEASURED_H_
