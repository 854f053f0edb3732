// A simulation knows a few metrics only, and prints nothing.
#include "plan/choose_metric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "dsat/host/metric.h"
#include "outputs/log_lines.h"
#include "plan/device_peak.h"

namespace dsat::host {

void check_metric_pattern(const StudyOptions& options) {
  if (!options.metric_pattern.empty()) compiled_number_pattern("--metric-pattern", options.metric_pattern);
  if (options.metric_pattern.empty() && options.smaller_is_better) {
    throw Error("--smaller-is-better is about --metric-pattern, which is not given; each --metric has its direction");
  }
  if (!options.metric_pattern.empty() && options.metric != SearchTarget().metric) {
    throw Error(fmt::format("--metric {} beside --metric-pattern: keep one", options.metric));
  }
  if (!options.metric_pattern.empty() && options.simulation)
    throw Error("--metric-pattern: a simulation prints nothing");
}

void check_tokens(const StudyOptions& options) {
  if (options.device.empty()) return;
  device_peak_flops(options.device);
  if (!options.tokens_per_sample)
    throw Error(fmt::format("--device {}: MFU needs --tokens-per-sample", options.device));
}

void choose_metric(const StudyOptions& options, Plan& plan) {
  const bool is_printed = !plan.metric_pattern.empty();
  const MetricInfo metric =
      is_printed ? MetricInfo{kPrintedMetric, !plan.smaller_is_better} : or_throw(metric_info(options.metric));
  if (plan.simulation && !plan.simulation->metrics.empty()) {
    const std::vector<std::string>& list = plan.simulation->metrics;
    if (std::find(list.begin(), list.end(), metric.name) == list.end()) {
      throw Error(fmt::format("--metric {}: this simulation gives only {}", options.metric, fmt::join(list, ", ")));
    }
  }
  plan.metric = metric.name;
  plan.maximise = metric.maximise;
  if (!plan.maximise && !plan.global_batch && !is_printed) {
    plan.notices.push_back(
        fmt::format("small batches always have the smallest {}; fix the batch with --global-batch", plan.metric));
  }
}

}  // namespace dsat::host
