// The report of a trial about itself.
//
// Threading: a plain value. Units: as in read_metrics.h; bytes.
#ifndef DSAT_HOST_OUTPUTS_TRIAL_REPORT_H_
#define DSAT_HOST_OUTPUTS_TRIAL_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dsat/error.h"

namespace dsat::host {

struct TrialReport {
  Json metrics;  // canonical metrics, or the figures of the model
  std::optional<uint64_t> peak_bytes, device_memory_bytes;
  std::optional<int64_t> world_size;
  std::vector<std::string> left_out;  // metrics that were not counted, or whose value no machine can reach
  std::vector<std::string> warnings;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_TRIAL_REPORT_H_
