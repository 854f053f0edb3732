// What the trials of one configuration measured together.
//
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

// Values that differ by rounding alone: the mean of equal numbers is not always that number.
inline bool is_tie(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

// The measured trials of one identity: one configuration, whose metrics are their means.
struct MeasuredConfiguration {
  uint64_t trial = 0;  // the first of them
  int count = 0;
  double metric = 0;
  Json metrics;
  std::optional<uint64_t> peak_bytes;  // the highest
};

// Every completed trial that has the metric competes, whatever its kind; in the order of first trials.
std::vector<MeasuredConfiguration> measured_configurations(const std::vector<Trial>& trials, const std::string& metric);

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_MEASURED_H_
