// One function a phase says whether it has work to do, and with what it begins; next_phase asks them in order.
#include "study/state/phases.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "finals/finalists.h"
#include "finals/finals.h"
#include "finals/gain.h"
#include "study/state/best.h"

namespace dsat::host {
namespace {

// The search needs one of them itself.
constexpr int kLeastForBaseline = 2;

// A search that the time budget ended may have left any number of trials: then there are those that it was to leave.
int trials_left(const PhaseView& view) {
  const int left = view.plan.max_trials - view.trials.counted();
  const Search& search = view.searches.current();
  if (!search.end || !search.end->of_time) return left;
  const std::vector<Trial>& all = view.trials.all();
  const auto after = std::count_if(all.begin(), all.end(), [&](const Trial& trial) {
    return trial.id() >= search.first_trial && trial.phase > Phase::searcher && trial.costs_a_run();
  });
  return std::min(left, view.plan.max_trials - trial_limit(Phase::searcher, view) - static_cast<int>(after));
}

// A profile trial may have measured exactly this.
bool was_tried(const PhaseView& view) { return view.trials.runs_of(view.own.identity) > 0; }

std::vector<double> values_of(const PhaseView& view, const std::string& identity) {
  return values_of(view.trials.all(), identity, view.plan.metric, view.plan.maximise);
}
bool own_is_measured(const PhaseView& view) {
  return !view.own.identity.empty() && !values_of(view, view.own.identity).empty();
}

// What the searcher leaves for later depends on what was there when it began.
bool own_was_measured_before_search(const PhaseView& view) {
  for (const Trial& trial : view.trials.all()) {
    if (trial.phase >= Phase::searcher) continue;
    const bool measures = value_of(trial, view.plan.metric, view.plan.maximise).has_value();
    if (measures && trial.identity == view.own.identity) return true;
  }
  return false;
}

// The best as it stands, by the strategy that has just finished.
std::optional<uint64_t> best_trial(const PhaseView& view) {
  const auto named = view.finish ? view.finish->trial : std::nullopt;
  const BestRules rules{view.plan.verify_steps > 0, view.usable_memory_bytes};  // the one that lasted stays
  const auto best = choose_best(view.trials.all(), view.plan.metric, view.plan.maximise, named, rules);
  return best ? std::optional<uint64_t>(best->trial) : std::nullopt;
}

bool is_to_be_compared(const PhaseView& view, uint64_t best) {
  return view.plan.baseline && own_is_measured(view) && view.trials[best].identity != view.own.identity;
}

// May a trial's configuration be handed back?
std::function<bool(const Trial&)> may_win(const PhaseView& view) {
  std::set<std::string> identities;
  for (const auto& one : candidates_for_best(view.trials.all(), view.plan.metric, {false, view.usable_memory_bytes})) {
    identities.insert(view.trials[one.trial].identity);
  }
  return [identities](const Trial& trial) { return identities.count(trial.identity) != 0; };
}

Json named_configuration(const PhaseView& view, uint64_t trial) {
  return {{"trial", trial}, {"overrides", view.trials[trial].record.overrides}};
}

Json brief_of(const PhaseView& view, int budget, const Repeats& others) {
  return {{"metric", view.plan.metric},
          {"maximise", view.plan.maximise},
          {"others", to_json(others)},
          {"budget", budget},
          {"reason", why_search_ended(view.finish)}};
}

std::optional<NextPhase> baseline(const PhaseView& view) {
  if (!view.plan.baseline || !view.own.why_not.empty() || was_tried(view)) return std::nullopt;
  if (trials_left(view) < kLeastForBaseline) return std::nullopt;
  return NextPhase{Phase::baseline, {{"overrides", view.own.overrides}}};
}

std::optional<NextPhase> finals(const PhaseView& view) {
  const std::optional<uint64_t> best = best_trial(view);
  if (view.plan.finals == 0 || !best) return std::nullopt;
  // The later phases need one trial of each that they measure.
  const int later = (is_to_be_compared(view, *best) ? 2 : 0) + (view.plan.verify_steps > 0 ? 1 : 0);
  const int budget = trials_left(view) - later;
  const std::vector<Contender> chosen =
      choose_finalists(view.trials.all(), view.plan.metric, view.plan.maximise, *best, may_win(view), budget);
  if (chosen.size() < 2) return std::nullopt;
  Repeats others = repeats_but(view.trials.all(), view.plan.metric, view.plan.maximise, "", "");
  Json finalists = Json::array();
  for (const Contender& one : chosen) {
    Repeats own;
    own.add(one.values);
    others.squares -= own.squares;
    others.degrees -= own.degrees;
    finalists.push_back(named_configuration(view, one.trial));
    finalists.back()["values"] = one.values;
  }
  others.squares = std::max(0.0, others.squares);
  Json brief = brief_of(view, budget, others);
  brief["finalists"] = std::move(finalists);
  return NextPhase{Phase::finals, std::move(brief)};
}

// What did not last mostly lacked memory, and its neighbours would too; unknown peaks may be anything.
bool needs_clearly_less(std::optional<uint64_t> peak, std::optional<uint64_t> than) {
  constexpr double kClearly = 0.02;
  return !peak || !than || static_cast<double>(*peak) <= (1 - kClearly) * static_cast<double>(*than);
}

std::optional<NextPhase> verification(const PhaseView& view) {
  const std::optional<uint64_t> best = best_trial(view);
  if (view.plan.verify_steps < 1 || !best || trials_left(view) < 1) return std::nullopt;
  Json brief{{"steps", view.plan.verify_steps}, {"reason", why_search_ended(view.finish)}};
  Json& candidates = brief["candidates"];
  std::optional<uint64_t> last_peak;
  for (const Contender& one : by_means(view.trials.all(), view.plan.metric, view.plan.maximise, *best, may_win(view))) {
    const std::optional<uint64_t> peak = view.trials[one.trial].record.peak_bytes;
    if (!needs_clearly_less(peak, last_peak)) continue;
    candidates.push_back(named_configuration(view, one.trial));
    if (candidates.size() > kMostFinalists) break;  // one more, to be handed back where all of the others fail
    if (peak) last_peak = peak;
  }
  return NextPhase{Phase::verification, std::move(brief)};
}

std::optional<NextPhase> comparison(const PhaseView& view) {
  const std::optional<uint64_t> best = best_trial(view);
  const int budget = trials_left(view);
  if (view.plan.finals == 0 || !best || budget < 1 || !is_to_be_compared(view, *best)) return std::nullopt;
  const std::string& identity = view.trials[*best].identity;
  const Repeats others =
      repeats_but(view.trials.all(), view.plan.metric, view.plan.maximise, identity, view.own.identity);
  Json brief = brief_of(view, budget, others);
  brief["best"] = named_configuration(view, *best);
  brief["best"]["values"] = values_of(view, identity);
  const std::vector<Trial>& all = view.trials.all();
  const auto own =
      std::find_if(all.begin(), all.end(), [&](const Trial& trial) { return trial.identity == view.own.identity; });
  brief["own"] = {
      {"trial", own->id()}, {"overrides", view.own.overrides}, {"values", values_of(view, view.own.identity)}};
  // What was verified stays; your own was not.
  brief["own_may_win"] = view.plan.verify_steps < 1 && may_win(view)(*own);
  return NextPhase{Phase::comparison, std::move(brief)};
}

}  // namespace

std::optional<NextPhase> next_phase(Phase after, const PhaseView& view) {
  switch (after) {
    case Phase::profiler:
      if (auto next = baseline(view)) return next;
      [[fallthrough]];
    case Phase::baseline:
      return NextPhase{Phase::searcher, Json()};
    case Phase::searcher:
      if (auto next = finals(view)) return next;
      [[fallthrough]];
    case Phase::finals:
      if (auto next = verification(view)) return next;
      [[fallthrough]];
    case Phase::verification:
      return comparison(view);
    case Phase::comparison:
      return std::nullopt;
  }
  return std::nullopt;
}

int trial_limit(Phase phase, const PhaseView& view) {
  const Plan& plan = view.plan;
  if (phase != Phase::searcher) return plan.max_trials;
  const bool keeps = plan.max_trials >= kLeastToKeepOf && own_was_measured_before_search(view);
  const int usual = keeps ? std::min(plan.max_trials / kTrialsPerKept, kMostKept) : 0;
  const int kept = plan.finals.value_or(usual) + (plan.verify_steps > 0 ? 1 : 0);
  return std::max({1, plan.max_trials - kept});
}

std::string why_no_baseline(const PhaseView& view) {
  if (!view.plan.baseline) return "";
  if (!view.own.why_not.empty()) return view.own.why_not;
  if (was_tried(view) || trials_left(view) >= kLeastForBaseline) return "";
  return "--max-trials leaves no trial for it";
}

std::string why_search_ended(const std::optional<Op>& finish) {
  return finish ? finish->reason : "searcher_idle: the searcher has nothing left to try";
}

}  // namespace dsat::host
