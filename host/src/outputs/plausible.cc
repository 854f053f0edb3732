// A table of the smallest and largest value of each metric. The largest are far above what exists: a thousand times the
// fastest device of 2026, thirty years for one step.
#include "outputs/plausible.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "dsat/error.h"

namespace dsat::host {

namespace {

struct Range {
  std::string_view metric;
  double least, most;
};
constexpr double kMostTime = 1e15, kLeastTime = 1e-3;  // microseconds
constexpr Range kRanges[] = {
    {"FLOPS_per_gpu", 0, 1e18},
    {"throughput", 1e-12, 1e15},
    {"latency", kLeastTime, kMostTime},
    {"wall_latency", kLeastTime, kMostTime},
    {"forward", 0, kMostTime},
    {"backward", 0, kMostTime},
    {"step", 0, kMostTime},
    {"samples", 0, kMostCount},
};

}  // namespace

std::string why_implausible(std::string_view metric, double value) {
  const auto* range = std::find_if(std::begin(kRanges), std::end(kRanges),
                                   [metric](const Range& known) { return known.metric == metric; });
  const double least = range != std::end(kRanges) ? range->least : -kMostCount;
  const double most = range != std::end(kRanges) ? range->most : kMostCount;
  if (value >= least && value <= most) return "";
  return fmt::format("{} is {}, which no machine reaches", metric, Json(value).dump());
}

void leave_out(const std::string& metric, const std::string& file_name, const std::string& why, TrialReport& report) {
  report.left_out.push_back(metric);
  report.warnings.push_back(fmt::format("{}: {}: left out", file_name, why));
}

void keep_plausible(const std::string& file_name, TrialReport& report) {
  Json kept = Json::object();
  for (const auto& [name, value] : report.metrics.items()) {
    const std::string why = why_implausible(name, value.get<double>());
    if (why.empty()) {
      kept[name] = value;
    } else {
      leave_out(name, file_name, why, report);
    }
  }
  report.metrics = std::move(kept);
  if (report.metrics.empty()) throw Error(file_name + " has no metric that a machine can reach");
}

}  // namespace dsat::host
