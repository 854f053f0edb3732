// Finds the first answer to take back, gives the trials before it their earlier states, and removes what came after.
#include "study/resume/rewind.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dsat/config/json.h"

namespace dsat::host {
namespace {

bool ends_or_is_refused(const JournalEvent& entry) {
  return std::any_of(entry.ops.begin(), entry.ops.end(),
                     [](const Op& op) { return op.kind == Op::Kind::finish || op.refused; });
}

// The trial limit under which the journal's events were decided.
std::optional<int> limit_of(Journal& journal) {
  const Json stored = journal.meta("max_trials").value_or(Json());
  try {
    return stored.is_null() ? std::nullopt : std::optional<int>(config::whole_number<int>(stored));
  } catch (const Error&) {
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: its max_trials is damaged; {}", journal.file().string(), kRepairRemedy));
  }
}

}  // namespace

void close_unrequested(Trial& trial) {
  trial.state = TrialState::delivered;
  if (trial.record.outcome) return;
  trial.record.outcome = Outcome::stopped;
  trial.record.reason = "taken back, with the answer that asked for it";
}

void undo_delivery(Trial& trial, const std::vector<Trial>& trials) {
  trial.state = TrialState::ended;
  // A duplicate would wait for ever for an original whose end does not come again.
  const uint64_t original = trial.record.duplicate_of.value_or(trials.size());
  const bool is_answered = original < trials.size() && trials[original].state == TrialState::delivered;
  if (trial.record.outcome != Outcome::stopped || is_answered) return;
  trial.state = TrialState::waiting;
  trial.record.outcome.reset();
  trial.record.reason.clear();
  trial.record.ended_at.clear();
  trial.end.reset();
}

std::set<uint64_t> rewind_if_limit_raised(int max_trials, bool more_time, Searches& searches, Journal& journal,
                                          std::vector<Trial>& trials, std::vector<JournalEvent>& events) {
  const int old_limit = limit_of(journal).value_or(max_trials);
  journal.put_meta("max_trials", max_trials);
  const bool more_trials = max_trials > old_limit;
  const Search& search = searches.current();
  const bool ends_again = search.end && (more_trials || (more_time && search.end->of_time));
  const auto first = std::find_if(events.begin(), events.end(), [&](const JournalEvent& entry) {
    if (entry.seq < search.first_event) return false;
    if (ends_again && entry.seq >= search.end->first_withheld) return true;
    return more_trials && entry.phase == Phase::searcher && ends_or_is_refused(entry);
  });
  if (ends_again) searches.go_on(trials.size());
  if (first == events.end()) return {};
  // The host's own trials after the search are measured anew at the new end, and leave no gap in the ids.
  while (trials.size() > search.first_trial && trials.back().phase > Phase::searcher) trials.pop_back();
  uint64_t first_taken_back = trials.size();
  for (auto it = first; it != events.end(); ++it) {
    for (const Op& op : it->ops) {
      if (op.kind == Op::Kind::create_trial && op.trial) first_taken_back = std::min(first_taken_back, *op.trial);
    }
  }
  std::set<uint64_t> changed;
  while (trials.size() > first_taken_back && !trials.back().record.started()) trials.pop_back();
  if (ends_again) searches.go_on(trials.size());  // some trials may be gone
  for (uint64_t id = first_taken_back; id < trials.size(); ++id) {
    close_unrequested(trials[id]);
    changed.insert(id);
  }
  for (auto it = first; it != events.end(); ++it) {
    const uint64_t id = it->event.trial;
    if (it->event.kind == StrategyEvent::Kind::start || id >= first_taken_back) continue;
    changed.insert(id);
  }
  for (const uint64_t id : changed) {
    if (id < first_taken_back) undo_delivery(trials[id], trials);
  }
  journal.remove_events_from(first->seq);
  journal.remove_trials_from(trials.size());
  events.erase(first, events.end());
  return changed;
}

}  // namespace dsat::host
