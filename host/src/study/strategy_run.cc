// Opens strategies as the plan names them; what they log goes to the plugin log.
#include "study/strategy_run.h"

#include <string_view>

namespace dsat::host {

const StrategyPlan& strategy_plan(const Plan& plan, Phase phase) {
  return phase == Phase::profiler ? plan.profiler : plan.searcher;
}

std::unique_ptr<Strategy> open_strategy(const Plan& plan, Phase phase, PluginLog& log) {
  const StrategyPlan& chosen = strategy_plan(plan, phase);
  const auto write = [&log](int severity, std::string_view message) { log.write(severity, message); };
  return Strategy::create(chosen.plugin, chosen.options, plan.seed, write);
}

}  // namespace dsat::host
