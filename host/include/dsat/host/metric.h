// The metrics that a study can optimise: their names and directions. Threading: a pure function.
#ifndef DSAT_HOST_METRIC_H_
#define DSAT_HOST_METRIC_H_

#include <string>
#include <string_view>

#include "dsat/host/status.h"

namespace dsat::host {

// The metric of --metric-pattern.
inline constexpr const char* kPrintedMetric = "printed";

struct MetricInfo {
  std::string name;  // canonical
  bool maximise = true;
};

// A metric by its name or an alias (FLOPS, flops, fwd, bwd). Another name is Status::invalid, with a list of the names.
Result<MetricInfo> metric_info(std::string_view name);

}  // namespace dsat::host

#endif  // DSAT_HOST_METRIC_H_
