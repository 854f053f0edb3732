// Opens plugins as the plan names them, and makes the strategies of the host's own. What a plugin logs goes to the
// plugin log.
#include "study/strategy_run.h"

#include <string_view>

#include "finals/baseline.h"
#include "finals/comparison.h"
#include "finals/finals.h"
#include "finals/verification.h"
#include "plugin/isolated_strategy.h"
#include "plugin/plugin_strategy.h"

namespace dsat::host {

const StrategyPlan& strategy_plan(const Plan& plan, Phase phase) {
  return phase == Phase::profiler ? plan.profiler : plan.searcher;
}

std::unique_ptr<Strategy> open_strategy(const Plan& plan, Phase phase, PluginLog& log) {
  if (phase == Phase::baseline) return std::make_unique<Baseline>();
  if (phase == Phase::finals) return std::make_unique<Finals>();
  if (phase == Phase::verification) return std::make_unique<Verification>();
  if (phase == Phase::comparison) return std::make_unique<BestAgainstOwn>();
  const StrategyPlan& chosen = strategy_plan(plan, phase);
  const auto write = [&log](int severity, std::string_view message) { log.write(severity, message); };
  if (chosen.plugin.library) return PluginStrategy::create(chosen.plugin, chosen.options, plan.seed, write);
  return IsolatedStrategy::create(chosen.plugin, chosen.options, plan.seed, plan, write);
}

}  // namespace dsat::host
