// A name is either an alias or a canonical name. The table that holds it gives the direction.
#include "dsat/host/metric.h"

#include <fmt/format.h>

#include <array>

#include "base/guarded.h"

namespace dsat::host {

namespace {

struct Alias {
  const char* name;
  const char* canonical;
};
constexpr std::array<Alias, 4> kAliases{
    {{"FLOPS", "FLOPS_per_gpu"}, {"flops", "FLOPS_per_gpu"}, {"fwd", "forward"}, {"bwd", "backward"}}};
constexpr std::array<const char*, 3> kMaximised{"FLOPS_per_gpu", "throughput", "wall_throughput"};
constexpr std::array<const char*, 5> kMinimised{"latency", "forward", "backward", "step", "wall_latency"};

MetricInfo find_metric(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (name == alias.name) name = alias.canonical;
  }
  for (const char* metric : kMaximised) {
    if (name == metric) return {metric, true};
  }
  for (const char* metric : kMinimised) {
    if (name == metric) return {metric, false};
  }
  throw Error(
      fmt::format("unknown metric '{}': use FLOPS_per_gpu (FLOPS, flops), throughput, latency, forward (fwd), "
                  "backward (bwd), step, wall_throughput or wall_latency",
                  name));
}

}  // namespace

Result<MetricInfo> metric_info(std::string_view name) {
  return as_result([&] { return find_metric(name); });
}

}  // namespace dsat::host
