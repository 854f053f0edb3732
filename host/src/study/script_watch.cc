// Compares a trial's two times of a step.
#include "study/script_watch.h"

#include <fmt/format.h>

#include "dsat/host/format.h"
#include "finals/end_to_end.h"

namespace dsat::host {

std::optional<std::string> ScriptWatch::add(const Trial& trial, const std::string& metric) {
  if (is_told_ || metric == "wall_latency" || metric == "wall_throughput") return std::nullopt;
  const std::optional<EndToEnd> times = end_to_end_of(trial);
  if (!times || !times->is_script_bound()) return std::nullopt;
  is_told_ = true;
  return fmt::format("trial {}: {}: the metric {} leaves the rest out; --metric wall_throughput counts it", trial.id(),
                     format_end_to_end(*times), metric);
}

}  // namespace dsat::host
