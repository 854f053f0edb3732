// Warns of each sign (a checkpoint, two engines, a step that takes longer than the engine) once, and says what to do
// about it.
#include "study/watch/script_watch.h"

#include <fmt/format.h>

#include <utility>

#include "dsat/host/format.h"
#include "finals/end_to_end.h"
#include "outputs/read_metrics.h"

namespace dsat::host {

bool ScriptWatch::is_shown(const std::string& warning) {
  return warning.find(kMeasuresElse) == std::string::npos || !std::exchange(is_disagreement_reported_, true);
}

std::vector<std::string> ScriptWatch::add(const TrialEnd& end) {
  std::vector<std::string> notices;
  if (!end.checkpoint_outside.empty() && !std::exchange(is_checkpoint_reported_, true)) {
    notices.push_back(
        fmt::format("trial {} saved a checkpoint in {}: later trials and your real training may go on from it; remove "
                    "it before you train, and give each trial a folder of its own (--trial-cwd copy; where the path is "
                    "absolute, {{trial_dir}} in COMMAND)",
                    end.id, end.checkpoint_outside));
  }
  // A trial that failed may have made its engine twice.
  if (end.engines > 1 && end.outcome == Outcome::completed && !std::exchange(are_engines_reported_, true)) {
    notices.push_back(
        fmt::format("trial {} made {} DeepSpeed engines, as the scripts of GANs do: parameters, FLOPS, times and "
                    "throughput are those of one of them only, so compare the whole script's speed yourself",
                    end.id, end.engines));
  }
  return notices;
}

std::optional<std::string> ScriptWatch::compare_times(const Trial& trial, const std::string& metric) {
  if (are_times_reported_ || metric == "wall_latency" || metric == "wall_throughput") return std::nullopt;
  const std::optional<EndToEnd> times = end_to_end_of(trial);
  if (!times || !times->is_script_bound()) return std::nullopt;
  are_times_reported_ = true;
  return fmt::format("trial {}: {}: the metric {} leaves the rest out; --metric wall_throughput counts it", trial.id(),
                     format_end_to_end(*times), metric);
}

}  // namespace dsat::host
