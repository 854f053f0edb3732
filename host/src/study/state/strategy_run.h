// The strategy at work, from its start event to its finish.
//
// Threading: control thread. Ownership: it owns its strategy. The plugin log outlives both.
#ifndef DSAT_HOST_STUDY_STATE_STRATEGY_RUN_H_
#define DSAT_HOST_STUDY_STATE_STRATEGY_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "plan/plan.h"
#include "plugin/strategy.h"
#include "record/trial.h"
#include "study/state/plugin_log.h"
#include "study/state/searches.h"

namespace dsat::host {

struct StrategyRun {
  Phase phase = Phase::profiler;
  std::unique_ptr<Strategy> strategy;  // none before its start, and after it failed
  Json brief;                          // the start event of a strategy of the host's own; null for a plugin
  bool started = false;                // the strategy has its start event
  std::optional<Op> finish;            // the op that ended its work
  // The trial whose result the strategy got before the study was resumed. Only the exit of that trial is still to be
  // delivered.
  std::optional<uint64_t> result_delivered;
  // A saved state was restored, and the strategy has asked for no trial since.
  bool idle_since_restored = false;
};

// Is the strategy of this phase a plugin?
inline bool is_of_plugin(Phase phase) { return phase == Phase::profiler || phase == Phase::searcher; }

// The part of a plan that names the plugin of a phase.
const StrategyPlan& strategy_plan(const Plan& plan, Phase phase);

// The finish of a search that the host has ended.
Op finish_by_host(const SearchEnd& end);

// Opens the strategy of a phase; it has had no event yet. Throws dsat::Error.
std::unique_ptr<Strategy> open_strategy(const Plan& plan, Phase phase, PluginLog& log);

// Creates profiler and searcher with their options and destroys them again, so that options which they refuse cost no
// trial. Throws dsat::Error with the plugin's own message.
void try_strategies(const Plan& plan);

}  // namespace dsat::host

#endif  // DSAT_HOST_STUDY_STATE_STRATEGY_RUN_H_
