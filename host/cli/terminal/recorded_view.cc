// Subtracts the journal's durations from `now`, since the journal's clock is not that of this process. The journal's
// estimate of the time left becomes a time budget that begins now.
#include "terminal/recorded_view.h"

#include <fmt/format.h>

#include "terminal/format.h"

namespace dsat::cli {
namespace {

SearchView::Clock::duration seconds(double count) {
  return std::chrono::duration_cast<SearchView::Clock::duration>(std::chrono::duration<double>(count));
}

}  // namespace

SearchView view_of(const host::StudyFacts& facts, SearchView::Clock::time_point now) {
  SearchView view;
  view.lines = {facts.metric, facts.maximise, facts.progress.max_trials, false};
  view.begin = view.last_end = now;
  view.earlier = facts.progress.started - facts.progress.running;
  if (facts.progress.seconds_left) {
    view.time_budget = std::chrono::milliseconds(static_cast<int64_t>(*facts.progress.seconds_left * 1000));
  }
  view.ceilings.take_profile(facts.record.profile);
  for (size_t i = 0; i < facts.trials.size(); ++i) {
    const host::TrialRecord& trial = facts.record.trials[i];
    view.ceilings.take_trial(trial);
    if (facts.trials[i].place != host::TrialPlace::running) continue;
    view.running[trial.id] = {trial, now - seconds(facts.trials[i].run_seconds.value_or(0))};
  }
  if (facts.baseline) view.own = facts.trials.at(*facts.baseline).value;
  if (facts.record.best) {
    const host::BestRecord& best = *facts.record.best;
    view.best = {best.trial, best.metric,
                 fmt::format("stage {}, micro batch {}", or_dash(zero_stage_of(best.config)),
                             or_dash(micro_batch_of(best.config)))};
  }
  return view;
}

}  // namespace dsat::cli
