// Repairs the rows: fills gaps in the trials first, then cuts events until trials and events fit together.
#include "study/rescue/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "record/check_rows.h"
#include "study/resume/rewind.h"

namespace dsat::host {
namespace {

Trial lost_trial(uint64_t id, Phase phase) {
  Trial trial;
  trial.record.id = id;
  trial.record.config = trial.record.overrides = Json::object();
  trial.record.outcome = Outcome::lost;
  trial.record.reason = "its record was damaged";
  trial.phase = phase;
  trial.state = TrialState::delivered;
  return trial;
}

// The trials by id, without a gap. A second row with the same id is dropped.
std::vector<Trial> without_gaps(std::vector<Trial> read, std::set<uint64_t>& lost, std::vector<std::string>& mended) {
  constexpr uint64_t kLargestGap = 100'000;  // a larger one is a damaged id
  std::vector<Trial> trials;
  for (Trial& trial : read) {
    if (trial.id() < trials.size() || trial.id() > trials.size() + kLargestGap) continue;
    while (trials.size() < trial.id()) {
      mended.push_back(fmt::format("trial {}: lost", trials.size()));
      lost.insert(trials.size());
      const Phase phase = trials.empty() ? trial.phase : trials.back().phase;
      trials.push_back(lost_trial(trials.size(), phase));
    }
    trials.push_back(std::move(trial));
  }
  return trials;
}

bool asks_for_lost(const JournalEvent& entry, const std::set<uint64_t>& lost) {
  return std::any_of(entry.ops.begin(), entry.ops.end(), [&](const Op& op) {
    return op.kind == Op::Kind::create_trial && op.trial && lost.count(*op.trial) != 0;
  });
}

void cut(SoundRows& rows, size_t first) {
  if (first >= rows.events.size()) return;
  rows.mended.push_back(
      fmt::format("events from number {} on: taken back, {} in all", first, rows.events.size() - first));
  rows.events.resize(first);
}

// The end of a trial is delivered again if the events that are left do not have it. A trial that none of these events
// asks for is closed.
void fit_trials(SoundRows& rows, const Searches& searches) {
  std::set<uint64_t> asked, delivered;
  for (const JournalEvent& entry : rows.events) {
    if (entry.event.kind == StrategyEvent::Kind::exited) delivered.insert(entry.event.trial);
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::create_trial && op.trial) asked.insert(*op.trial);
    }
  }
  while (!rows.trials.empty() && asked.count(rows.trials.back().id()) == 0 && !rows.trials.back().record.started()) {
    rows.trials.pop_back();
  }
  const uint64_t first = searches.current().first_trial;
  for (Trial& trial : rows.trials) {
    const bool is_asked = asked.count(trial.id()) != 0 && (trial.phase < Phase::searcher || trial.id() >= first);
    if (!is_asked) close_unrequested(trial);
    if (is_asked && trial.state == TrialState::delivered && delivered.count(trial.id()) == 0)
      undo_delivery(trial, rows.trials);
  }
}

}  // namespace

SoundRows sound_rows_of(std::vector<Trial> trials, std::vector<JournalEvent> events, Searches& searches) {
  SoundRows rows;
  std::set<uint64_t> lost;
  rows.trials = without_gaps(std::move(trials), lost, rows.mended);
  rows.events = std::move(events);
  size_t whole = 0;
  while (whole < rows.events.size() && rows.events[whole].seq == whole) ++whole;
  cut(rows, whole);
  const auto fit = [&] {
    cut(rows, static_cast<size_t>(std::find_if(rows.events.begin(), rows.events.end(),
                                               [&](const JournalEvent& entry) { return asks_for_lost(entry, lost); }) -
                                  rows.events.begin()));
    searches.forget_events_from(rows.events.size(), rows.trials.size());
    fit_trials(rows, searches);
    return find_misfit(rows.trials, rows.events);
  };
  // Each round takes back an event or gives up a trial.
  while (const auto misfit = fit()) {
    if (misfit->table == RowFinding::Table::events) {
      cut(rows, misfit->row);
      continue;
    }
    rows.mended.push_back(fmt::format("{}: lost", to_string(*misfit)));
    lost.insert(misfit->row);
    rows.trials[misfit->row] = lost_trial(misfit->row, rows.trials[misfit->row].phase);
  }
  return rows;
}

}  // namespace dsat::host
