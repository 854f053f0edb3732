// The table behind dsat/host/metric.h: canonical names, aliases and directions.
#include "dsat/host/metric.h"

#include <array>

namespace dsat::host {

namespace {

struct Alias {
  const char* name;
  const char* canonical;
};
constexpr std::array<Alias, 4> kAliases{
    {{"FLOPS", "FLOPS_per_gpu"}, {"flops", "FLOPS_per_gpu"}, {"fwd", "forward"}, {"bwd", "backward"}}};
constexpr std::array<const char*, 2> kMaximised{"FLOPS_per_gpu", "throughput"};
constexpr std::array<const char*, 4> kMinimised{"latency", "forward", "backward", "step"};

}  // namespace

Result<MetricInfo> metric_info(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (name == alias.name) name = alias.canonical;
  }
  for (const char* metric : kMaximised) {
    if (name == metric) return MetricInfo{metric, true};
  }
  for (const char* metric : kMinimised) {
    if (name == metric) return MetricInfo{metric, false};
  }
  return Status::invalid(
      "unknown metric '" + std::string(name) +
      "': use FLOPS_per_gpu (FLOPS, flops), throughput, latency, forward (fwd), backward (bwd) or step");
}

}  // namespace dsat::host
