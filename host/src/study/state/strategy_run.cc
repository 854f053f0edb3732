// Opens plugins as the plan names them, and makes the strategies of the host's own. What a plugin logs goes to the
// plugin log.
#include "study/state/strategy_run.h"

#include <string_view>

#include "finals/comparison.h"
#include "finals/finals.h"
#include "finals/twin.h"
#include "finals/verification.h"
#include "plugin/isolated_strategy.h"
#include "plugin/plugin_strategy.h"

namespace dsat::host {

const StrategyPlan& strategy_plan(const Plan& plan, Phase phase) {
  return phase == Phase::profiler ? plan.profiler : plan.searcher;
}

Op finish_by_host(const SearchEnd& end) {
  Op op;
  op.kind = Op::Kind::finish;
  op.reason = end.reason;
  return op;
}

std::unique_ptr<Strategy> open_strategy(const Plan& plan, Phase phase, PluginLog& log) {
  if (phase == Phase::baseline) return std::make_unique<Baseline>();
  if (phase == Phase::finals) return std::make_unique<Finals>();
  if (phase == Phase::verification) return std::make_unique<Verification>();
  if (phase == Phase::twin) return std::make_unique<Twin>();
  if (phase == Phase::comparison) return std::make_unique<BestAgainstOwn>();
  const StrategyPlan& chosen = strategy_plan(plan, phase);
  const auto write = [&log](int severity, std::string_view message) { log.write(severity, message); };
  if (chosen.plugin.library) return PluginStrategy::create(chosen.plugin, chosen.options, plan.seed, write);
  return IsolatedStrategy::create(chosen.plugin, chosen.options, plan.seed, plan, write);
}

// The log lines are dropped, since the plugins log them again in the study. A lost process is not started again: a user
// who waits for the study to begin gets the error at once.
void try_strategies(const Plan& plan) {
  constexpr int kNoRestart = 0;
  const auto unread = [](int, std::string_view) {};
  for (const StrategyPlan* chosen : {&plan.profiler, &plan.searcher}) {
    const auto create_apart = [&] {
      IsolatedStrategy::create(chosen->plugin, chosen->options, plan.seed, plan, unread, kNoRestart);
    };
    if (!chosen->plugin.library) {
      create_apart();
    } else if (!try_apart(chosen->plugin.file, plan, create_apart)) {
      PluginStrategy::create(chosen->plugin, chosen->options, plan.seed, unread);
    }
  }
}

}  // namespace dsat::host
