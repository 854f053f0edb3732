// Counts the outcomes of all trials that are no duplicates, and compares the best with the user's own configuration.
#include "study/turn/conclusion.h"

#include <fmt/format.h>

#include "finals/end_to_end.h"
#include "finals/gain.h"
#include "study/results/no_best.h"

namespace dsat::host {

void explain_missing_best(StudyState& state) {
  if (state.ending->status != StudyStatus::completed || state.best.get()) return;
  state.ending->status = StudyStatus::no_best;
  state.ending->reason = why_no_best(state.trials.all(), state.plan.metric, state.ending->reason);
  if (state.plan.memory_margin > 0) {
    state.ending->reason += fmt::format("; --memory-margin is {}", state.plan.memory_margin);
  }
}

StudyResult result_of(const StudyState& state) {
  const Plan& plan = state.plan;
  StudyResult result;
  result.status = state.ending->status;
  result.reason = state.ending->reason;
  result.best = state.best.get();
  if (result.best) {
    const std::string baseline = plan.baseline ? state.baseline.identity : "";
    const std::vector<Trial>& trials = state.trials.all();
    if (plan.baseline) result.gain = gain_over_own(trials, plan.metric, plan.maximise, baseline, result.best->trial);
    result.end_to_end = end_to_end_of_best(trials, baseline, result.best->trial);
  }
  result.dir = plan.dir;
  result.metric = plan.metric;
  for (const Trial& trial : state.trials.all()) {
    if (trial.record.outcome && !trial.record.duplicate_of) ++result.counts[*trial.record.outcome];
  }
  return result;
}

void write_ending(const StudyResult& result, Journal& journal) {
  journal.put_meta("gain", result.gain ? to_json(*result.gain) : Json());
  journal.put_meta("ended", {{"status", to_string(result.status)}, {"reason", result.reason}});
}

void merge_log(Journal& journal, Observer& observer) {
  try {
    if (journal.checkpoint()) return;
    observer.on_log(
        Observer::Severity::info,
        fmt::format("{}: another program reads it, so its log stays beside it (dsat.db-wal); nothing is lost",
                    journal.file().string()));
  } catch (const Error& error) {  // the journal is whole all the same
    observer.on_log(Observer::Severity::warning, error.what());
  }
}

}  // namespace dsat::host
