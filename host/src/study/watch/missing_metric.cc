// Looks through the completed trials for one that gives the metric, and lists what the others give in its place.
#include "study/watch/missing_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace dsat::host {
namespace {

// A script reports the same figures in every trial, so the first trial shows what the script never reports. If the
// first trial may be an exception, two trials are needed.
constexpr int kWithoutMetric = 2;
constexpr std::array<const char*, 6> kInItsPlace{"throughput", "FLOPS_per_gpu", "latency",
                                                 "forward",    "backward",      "step"};

bool gives(const Json& metrics, const std::string& name) {
  const auto it = metrics.find(name);
  return it != metrics.end() && it->is_number();
}

// The metric may still come: this trial's figure of it was left out, or the host itself measures it beside the script.
bool may_be_odd(const Trial& trial, const std::string& metric) {
  if (metric == "wall_throughput" || metric == "wall_latency") return true;
  if (!trial.end) return false;
  const std::vector<std::string>& left_out = trial.end->left_out;
  return std::find(left_out.begin(), left_out.end(), metric) != left_out.end();
}

}  // namespace

std::optional<std::string> why_metric_is_missing(const std::vector<Trial>& trials, const std::string& metric) {
  int without = 0;
  std::vector<const char*> reported;
  for (const Trial& trial : trials) {
    const Json& metrics = trial.record.metrics;
    if (trial.record.outcome != Outcome::completed || trial.record.duplicate_of || trial.model_info) continue;
    if (!metrics.is_object() || gives(metrics, metric)) return std::nullopt;
    without += may_be_odd(trial, metric) ? 1 : kWithoutMetric;
    for (const char* name : kInItsPlace) {
      const bool is_new = std::find(reported.begin(), reported.end(), name) == reported.end();
      if (is_new && gives(metrics, name)) reported.push_back(name);
    }
  }
  if (without < kWithoutMetric || reported.empty()) return std::nullopt;
  std::string list = reported.front();
  for (size_t i = 1; i < reported.size(); ++i) {
    list += fmt::format("{}{}", i + 1 == reported.size() ? " and " : ", ", reported[i]);
  }
  return fmt::format("the trials report {}, but no {}: give --metric {}", list, metric, reported.front());
}

}  // namespace dsat::host
