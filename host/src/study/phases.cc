// One function a phase says whether it has work to do; next_phase asks them in order.
#include "study/phases.h"

namespace dsat::host {
namespace {

// The search needs one of them itself.
constexpr int kLeastForBaseline = 2;

int trials_left(const PhaseView& view) { return view.plan.max_trials - view.trials.counted(); }

// A profile trial may have measured exactly this.
bool is_measured(const PhaseView& view) { return view.trials.runs_of(view.own.identity) > 0; }

std::optional<NextPhase> baseline(const PhaseView& view) {
  if (!view.plan.baseline || !view.own.why_not.empty() || is_measured(view)) return std::nullopt;
  if (trials_left(view) < kLeastForBaseline) return std::nullopt;
  return NextPhase{Phase::baseline, {{"overrides", view.own.overrides}}};
}

}  // namespace

std::optional<NextPhase> next_phase(Phase after, const PhaseView& view) {
  switch (after) {
    case Phase::profiler:
      if (auto next = baseline(view)) return next;
      [[fallthrough]];
    case Phase::baseline:
      return NextPhase{Phase::searcher, Json()};
    default:
      return std::nullopt;
  }
}

std::string why_no_baseline(const PhaseView& view) {
  if (!view.plan.baseline) return "";
  if (!view.own.why_not.empty()) return view.own.why_not;
  if (is_measured(view) || trials_left(view) >= kLeastForBaseline) return "";
  return "--max-trials leaves no trial for it";
}

}  // namespace dsat::host
