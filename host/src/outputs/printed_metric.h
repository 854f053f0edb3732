// The metric that a script prints once a step (--metric-pattern), and the steps of the window that count.
//
// Threading: pure functions. Units: the metric's own. Errors: none; `problem` says why there is no value.
#ifndef DSAT_HOST_OUTPUTS_PRINTED_METRIC_H_
#define DSAT_HOST_OUTPUTS_PRINTED_METRIC_H_

#include <optional>
#include <string>
#include <vector>

#include "outputs/step_log.h"

namespace dsat::host {

struct PrintedMetric {
  std::optional<double> value;  // the median of the window's lines
  bool is_full = false;         // the whole window was printed
  std::string problem;          // why there is no value; empty where there is one
};

// `numbers`: one for each line that fits, nullopt where its group is no number; `no_number` then has the reason. The
// first `window.start` lines are warm-up. `is_measured`: the script has measured the window in another way, too, so
// that a part of it counts.
PrintedMetric printed_metric(const std::vector<std::optional<double>>& numbers, const std::string& no_number,
                             ProfileWindow window, bool is_measured);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_PRINTED_METRIC_H_
