// Each phase has a function that returns its start, or nullopt if it has no work. next_phase asks them in order.
#include "study/state/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "dsat/base/shell.h"
#include "dsat/config/batch.h"
#include "dsat/config/world.h"
#include "finals/finalists.h"
#include "finals/finals.h"
#include "finals/gain.h"
#include "finals/simpler.h"
#include "finals/twin.h"
#include "finals/twin_check.h"
#include "study/state/simplify.h"
#include "study/watch/profile_trials.h"

namespace dsat::host {
namespace {

// Candidates of the twins. Several may share their keys, and so their twin.
constexpr size_t kMostCandidates = 16;

// The trials that must be left for a baseline, since the search needs one itself.
constexpr int kLeastForBaseline = 2;

// The trials that are left to the later phases. If the time budget ended the search, more may be left than the search
// was to leave; the surplus does not count.
int trials_left(const StudyState& state) {
  const int left = state.plan.max_trials - state.trials.counted();
  const Search& search = state.searches.current();
  if (!search.end || !search.end->of_time) return left;
  const std::vector<Trial>& all = state.trials.all();
  const auto after = std::count_if(all.begin(), all.end(), [&](const Trial& trial) {
    return trial.id() >= search.first_trial && trial.phase > Phase::searcher && trial.costs_a_run();
  });
  return std::min(left, state.plan.max_trials - trial_limit(Phase::searcher, state) - static_cast<int>(after));
}

// Has a trial run the user's own configuration? A profile trial may have.
bool was_tried(const StudyState& state) { return state.trials.runs_of(state.baseline.identity) > 0; }

std::vector<double> values_of(const StudyState& state, const std::string& identity,
                              Measured when = Measured::at_any_time) {
  return values_of(state.trials.all(), identity, state.plan.metric, state.plan.maximise, when);
}
bool own_is_measured(const StudyState& state) {
  return !state.baseline.identity.empty() && !values_of(state, state.baseline.identity).empty();
}

// Only trials from before the search count, so that the searcher's trial limit stays the same while it works.
bool own_was_measured_before_search(const StudyState& state) {
  for (const Trial& trial : state.trials.all()) {
    if (trial.phase >= Phase::searcher) continue;
    const bool measures = value_of(trial, state.plan.metric, state.plan.maximise).has_value();
    if (measures && trial.identity == state.baseline.identity) return true;
  }
  return false;
}

// The trials that the first twin takes: itself, and a second run of the user's own configuration. 0: there is none, as
// the own reports nothing that can be compared. `before_search`: only trials from before the search count, as above.
int trials_of_twin(const StudyState& state, bool before_search = false) {
  if (!state.plan.twin) return 0;
  const std::vector<const Trial*> all = runs_with_curve(state.trials.all(), state.baseline.identity);
  if (!can_be_compared(all)) return 0;
  int runs = 0;
  for (const Trial* run : all) {
    runs += !before_search || run->phase < Phase::searcher ? 1 : 0;
  }
  return runs == 0 ? 0 : runs < kRunsOfOwn ? 2 : 1;
}

// The best so far, which the strategy that has just finished may have named.
std::optional<uint64_t> best_trial(const StudyState& state) {
  const auto named = state.run.finish ? state.run.finish->trial : std::nullopt;
  const BestRules rules{state.plan.verify_steps > 0, state.memory_for_best()};  // a verified best stays
  const auto best = choose_best(state.trials.all(), state.plan.metric, state.plan.maximise, named, rules);
  return best ? std::optional<uint64_t>(best->trial) : std::nullopt;
}

bool is_to_be_compared(const StudyState& state, uint64_t best) {
  return state.plan.baseline && own_is_measured(state) && state.trials[best].identity != state.baseline.identity;
}

// May a trial's configuration be handed back?
std::function<bool(const Trial&)> may_win(const StudyState& state) {
  std::set<std::string> identities;
  for (const auto& one : candidates_for_best(state.trials.all(), state.plan.metric, {false, state.memory_for_best()})) {
    identities.insert(state.trials[one.trial].identity);
  }
  return [identities](const Trial& trial) { return identities.count(trial.identity) != 0; };
}

Json named_configuration(const StudyState& state, uint64_t trial) {
  return {{"trial", trial}, {"overrides", state.trials[trial].record.overrides}};
}

Json brief_of(const StudyState& state, int budget, const Repeats& others) {
  return {{"metric", state.plan.metric},
          {"maximise", state.plan.maximise},
          {"others", to_json(others)},
          {"budget", budget},
          {"reason", why_search_ended(state.run.finish)}};
}

std::optional<NextPhase> baseline(const StudyState& state) {
  if (!state.plan.baseline || !state.baseline.why_not.empty() || was_tried(state)) return std::nullopt;
  if (trials_left(state) < kLeastForBaseline) return std::nullopt;
  return NextPhase{Phase::baseline, {{"overrides", state.baseline.overrides}}};
}

// Your own is mostly measured at one moment, early. Where it stays the best, the next one is measured again beside it,
// in case that moment was a lucky one.
std::vector<Contender> contenders(const StudyState& state, uint64_t best, int budget) {
  const std::vector<Trial>& all = state.trials.all();
  const std::string& metric = state.plan.metric;
  std::vector<Contender> chosen = choose_finalists(all, metric, state.plan.maximise, best, may_win(state), budget);
  const bool is_lonely = chosen.size() == 1 && chosen[0].values.size() == 1 && budget > 1;
  if (!is_lonely || state.trials[best].identity != state.baseline.identity) return chosen;
  chosen = by_means(all, metric, state.plan.maximise, best, may_win(state));
  chosen.resize(std::min<size_t>(chosen.size(), 2));
  return chosen;
}

std::optional<NextPhase> finals(const StudyState& state) {
  const std::optional<uint64_t> best = best_trial(state);
  if (state.plan.finals == 0 || !best) return std::nullopt;
  // The later phases need one trial for each configuration that they measure. A simpler one needs no second comparison,
  // so the last trials go to it.
  const int reserved = (state.plan.verify_steps > 0 ? 1 : 0) + trials_of_twin(state);
  const int left = trials_left(state) - reserved, budget = left - (is_to_be_compared(state, *best) ? 2 : 0);
  const std::vector<Contender> chosen = contenders(state, *best, std::max(budget, 1));
  Json simpler = Json::array();
  if (left > 0) {
    for (const Simpler& one : simpler_than(state, *best)) simpler.push_back(to_json(one));
  }
  if (chosen.size() < 2 && simpler.empty()) return std::nullopt;
  Repeats others = repeats_but(state.trials.all(), state.plan.metric, state.plan.maximise, "", "");
  Json finalists = Json::array();
  for (const Contender& one : chosen) {
    Repeats own;
    own.add(one.values);
    others.squares -= own.squares;
    others.degrees -= own.degrees;
    finalists.push_back(named_configuration(state, one.trial));
    finalists.back()["values"] = one.values;
  }
  others.squares = std::max(0.0, others.squares);
  Json brief = brief_of(state, simpler.empty() ? budget : std::max(budget, 1), others);
  brief["finalists"] = std::move(finalists);
  brief["simpler"] = std::move(simpler);
  return NextPhase{Phase::finals, std::move(brief)};
}

// A candidate that fails mostly lacks memory, so the next one must need clearly less. Unknown peaks pass.
bool needs_clearly_less(std::optional<uint64_t> peak, std::optional<uint64_t> than) {
  constexpr double kClearly = 0.02;
  return !peak || !than || static_cast<double>(*peak) <= (1 - kClearly) * static_cast<double>(*than);
}

std::optional<NextPhase> verification(const StudyState& state) {
  const std::optional<uint64_t> best = best_trial(state);
  if (state.plan.verify_steps < 1 || !best || trials_left(state) < 1) return std::nullopt;
  Json brief{{"steps", state.plan.verify_steps}, {"reason", why_search_ended(state.run.finish)}};
  Json& candidates = brief["candidates"];
  std::optional<uint64_t> last_peak;
  for (const Contender& one :
       by_means(state.trials.all(), state.plan.metric, state.plan.maximise, *best, may_win(state))) {
    const std::optional<uint64_t> peak = state.trials[one.trial].record.peak_bytes;
    if (!needs_clearly_less(peak, last_peak)) continue;
    candidates.push_back(named_configuration(state, one.trial));
    if (candidates.size() > kMostFinalists) break;  // the last one is handed back if all others fail
    if (peak) last_peak = peak;
  }
  return NextPhase{Phase::verification, std::move(brief)};
}

int64_t data_parallel_size(const StudyState& state, const Json& config) {
  return config::data_parallel_size_of(config, state.plan.data_parallel_size);
}

// A candidate of the brief of twin.h.
Json with_twin(const StudyState& state, uint64_t trial, const Json& own) {
  const TrialRecord& record = state.trials[trial].record;
  Json one{{"trial", trial}, {"keys", keys_of(record.config)}, {"overrides", nullptr}, {"smaller", nullptr}};
  const bool is_comparable = data_parallel_size(state, record.config) == data_parallel_size(state, own);
  if (one["keys"] == keys_of(own) || !is_comparable) return one;
  one["overrides"] = at_own_batch(record.overrides, own);
  one["smaller"] = at_smaller_batch(record.overrides, own, record.config.at(config::kMicroBatchKey).get<int64_t>());
  return one;
}

std::optional<NextPhase> twin(const StudyState& state) {
  const std::optional<uint64_t> best = best_trial(state);
  const int budget = trials_left(state);
  const int needed = trials_of_twin(state);
  if (!best || needed == 0 || budget < needed) return std::nullopt;
  const std::vector<const Trial*> runs = runs_with_curve(state.trials.all(), state.baseline.identity);
  const TrialRecord& own = runs.front()->record;
  Json brief{{"budget", budget}, {"reason", why_search_ended(state.run.finish)}};
  brief["own"] = {{"trial", own.id}, {"overrides", state.baseline.overrides}, {"runs", runs.size()}};
  for (const Contender& one :
       by_means(state.trials.all(), state.plan.metric, state.plan.maximise, *best, may_win(state))) {
    brief["candidates"].push_back(with_twin(state, one.trial, own.config));
    if (brief["candidates"].size() == kMostCandidates) break;
  }
  // The user's own configuration, or one that cannot be compared, has no twin.
  const bool has_one = brief.contains("candidates") && !brief["candidates"].front().at("overrides").is_null();
  if (!has_one) return std::nullopt;
  return NextPhase{Phase::twin, std::move(brief)};
}

std::optional<NextPhase> comparison(const StudyState& state) {
  const std::optional<uint64_t> best = best_trial(state);
  const int budget = trials_left(state);
  if (state.plan.finals == 0 || !best || budget < 1 || !is_to_be_compared(state, *best)) return std::nullopt;
  const std::string& identity = state.trials[*best].identity;
  const Repeats others =
      repeats_but(state.trials.all(), state.plan.metric, state.plan.maximise, identity, state.baseline.identity);
  Json brief = brief_of(state, budget, others);
  brief["best"] = named_configuration(state, *best);
  brief["best"]["values"] = values_of(state, identity, Measured::before_choice);
  brief["best"]["after"] = values_of(state, identity, Measured::after_choice);
  const std::vector<Trial>& all = state.trials.all();
  const auto own = std::find_if(all.begin(), all.end(),
                                [&](const Trial& trial) { return trial.identity == state.baseline.identity; });
  brief["own"] = {{"trial", own->id()},
                  {"overrides", state.baseline.overrides},
                  {"values", values_of(state, state.baseline.identity)}};
  // A verified best stays, since the user's own was not verified.
  brief["own_may_win"] = state.plan.verify_steps < 1 && may_win(state)(*own);
  return NextPhase{Phase::comparison, std::move(brief)};
}

// Why the study has no baseline although one was wanted; empty: it has one, or none was wanted.
std::string why_no_baseline(const StudyState& state) {
  if (!state.plan.baseline) return "";
  if (!state.baseline.why_not.empty()) return state.baseline.why_not;
  if (was_tried(state) || trials_left(state) >= kLeastForBaseline) return "";
  return "--max-trials leaves no trial for it";
}

// A warning if a restored searcher asks for nothing: a restore that fails looks like a search that is done.
std::optional<std::string> warning_of_idle_restore(const StudyState& state) {
  const int left = trial_limit(Phase::searcher, state) - state.trials.counted();
  const StrategyRun& search = state.run;
  if (search.phase != Phase::searcher || search.finish || !search.idle_since_restored || left < 1) return std::nullopt;
  const PluginInfo& plugin = state.plan.searcher.plugin;
  return fmt::format(
      "plugin {}: after its saved state was restored it asks for nothing, and {} trials are left: "
      "`dsat-host validate {}` checks save and restore; `dsat-host resume {} --searcher guided` goes on",
      plugin.name, left, shell_quote(plugin.file.string()), shell_quote(state.plan.dir.string()));
}

}  // namespace

std::optional<NextPhase> next_phase(const StudyState& state) {
  switch (state.run.phase) {
    case Phase::profiler:
      if (auto next = baseline(state)) return next;
      [[fallthrough]];
    case Phase::baseline:
      return NextPhase{Phase::searcher, Json()};
    case Phase::searcher:
      if (auto next = finals(state)) return next;
      [[fallthrough]];
    case Phase::finals:
      if (auto next = verification(state)) return next;
      [[fallthrough]];
    case Phase::verification:
      if (auto next = twin(state)) return next;
      [[fallthrough]];
    case Phase::twin:
      return comparison(state);
    case Phase::comparison:
      return std::nullopt;
  }
  return std::nullopt;
}

int trial_limit(Phase phase, const StudyState& state) {
  const Plan& plan = state.plan;
  if (phase != Phase::searcher) return plan.max_trials;
  const bool keeps = plan.max_trials >= kLeastToKeepOf && own_was_measured_before_search(state);
  const int usual = keeps ? std::min(plan.max_trials / kTrialsPerKept, kMostKept) : 0;
  const int of_twin = plan.max_trials >= kLeastForTwin ? trials_of_twin(state, true) : 0;
  const int kept = plan.finals.value_or(usual) + (plan.verify_steps > 0 ? 1 : 0) + of_twin;
  return std::max({1, plan.max_trials - kept});
}

std::vector<Finding> findings_at_end_of_phase(const StudyState& state) {
  std::vector<Finding> findings;
  if (const auto warning = warning_of_idle_restore(state)) findings.push_back({Finding::Effect::warning, *warning});
  if (state.run.phase != Phase::profiler) return findings;
  if (!state.profile.is_object()) {
    const std::optional<Op>& finish = state.run.finish;
    findings.push_back({Finding::Effect::no_best, fmt::format("no_profile: the profiler ended without a profile ({})",
                                                              finish ? finish->reason : "it asked for nothing more")});
    return findings;
  }
  if (const auto least = least_micro_batch(state.trials.all())) {
    findings.push_back({Finding::Effect::warning,
                        fmt::format("micro batch {} fails ({}): the search begins at {}; --min-micro-batch sets it",
                                    least->fails, least->reason, least->works)});
  }
  if (const std::string why_not = why_no_baseline(state); !why_not.empty()) {
    findings.push_back({Finding::Effect::note, "your own configuration is not measured: " + why_not});
  }
  return findings;
}

std::string why_search_ended(const std::optional<Op>& finish) {
  return finish ? finish->reason : "searcher_idle: the searcher has nothing left to try";
}

}  // namespace dsat::host
