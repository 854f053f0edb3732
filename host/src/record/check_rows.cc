// One function for each kind of row checks what a trial's state may hold and what an event may name.
#include "record/check_rows.h"

#include <fmt/format.h>

#include <set>

namespace dsat::host {
namespace {

// Returns "" or the first problem.
std::string wrong_with(const Trial& trial) {
  const TrialRecord& record = trial.record;
  const bool is_over = trial.state == TrialState::ended || trial.state == TrialState::delivered;
  if (is_over != record.outcome.has_value())
    return is_over ? "it is over and has no outcome" : "it has an outcome and is not over";
  if (trial.state == TrialState::running && !record.started()) return "it runs and was never started";
  return "";
}

// The trials whose ends were delivered by earlier events.
struct Delivered {
  std::set<uint64_t> exited;
};

std::string wrong_with_op(const Op& op, size_t trials) {
  if (op.trial && *op.trial >= trials) return fmt::format("it names trial {}, which is missing", *op.trial);
  const bool needs_trial = (op.kind == Op::Kind::create_trial && !op.refused) || op.kind == Op::Kind::stop_trial;
  if (needs_trial && !op.trial) return "an op names no trial";
  if (op.kind == Op::Kind::create_trial && !op.overrides.is_object()) return "an op's overrides are no JSON object";
  if (op.kind == Op::Kind::set_profile && !op.profile.is_object()) return "its profile is no JSON object";
  return "";
}

std::string wrong_with(const JournalEvent& entry, const std::vector<Trial>& trials, Delivered& delivered) {
  const StrategyEvent& event = entry.event;
  for (const Op& op : entry.ops) {
    if (std::string wrong = wrong_with_op(op, trials.size()); !wrong.empty()) return wrong;
  }
  // The start event of a host's own strategy has a brief, that of a plugin has the study. Both are objects.
  if (event.kind == StrategyEvent::Kind::start) return event.study.is_object() ? "" : "it starts without a study";
  if (event.trial >= trials.size()) return fmt::format("it names trial {}, which is missing", event.trial);
  if (event.kind == StrategyEvent::Kind::result)
    return event.metrics.is_object() ? "" : "its metrics are no JSON object";
  if (event.outcome < 0 || event.outcome > static_cast<int>(Outcome::diverged)) return "it has no valid outcome";
  if (trials[event.trial].state != TrialState::delivered) return "it delivers the end of a trial that is not over";
  if (!delivered.exited.insert(event.trial).second)
    return fmt::format("it delivers the end of trial {} again", event.trial);
  return "";
}

}  // namespace

std::string to_string(const RowFinding& finding) {
  return fmt::format("{} {}: {}", finding.table == RowFinding::Table::trials ? "trial" : "event", finding.row,
                     finding.what);
}

std::optional<RowFinding> find_misfit(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events) {
  for (const Trial& trial : trials) {
    if (std::string wrong = wrong_with(trial); !wrong.empty()) {
      return RowFinding{RowFinding::Table::trials, trial.id(), std::move(wrong)};
    }
  }
  Delivered delivered;
  for (const JournalEvent& entry : events) {
    const bool first_is_no_start = entry.seq == 0 && entry.event.kind != StrategyEvent::Kind::start;
    std::string wrong = first_is_no_start ? "the first event is no start" : wrong_with(entry, trials, delivered);
    if (!wrong.empty()) return RowFinding{RowFinding::Table::events, entry.seq, std::move(wrong)};
  }
  return std::nullopt;
}

// A trial that no event asks for is history, because its request was taken back.
std::optional<RowFinding> find_lost_exit(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events,
                                         uint64_t first_trial) {
  std::set<uint64_t> without_exit;
  for (const JournalEvent& entry : events) {
    if (entry.event.kind == StrategyEvent::Kind::exited) without_exit.erase(entry.event.trial);
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::create_trial && op.trial) without_exit.insert(*op.trial);
    }
  }
  for (const uint64_t id : without_exit) {
    const Trial& trial = trials[id];
    const bool has_strategy = trial.phase < Phase::searcher || id >= first_trial;
    if (has_strategy && trial.state == TrialState::delivered)
      return RowFinding{RowFinding::Table::trials, id, "it is over and the event of its end is lost"};
  }
  return std::nullopt;
}

std::optional<RowFinding> find_damage(const std::vector<Trial>& trials, const std::vector<JournalEvent>& events,
                                      uint64_t first_trial) {
  const auto misfit = find_misfit(trials, events);
  return misfit ? misfit : find_lost_exit(trials, events, first_trial);
}

}  // namespace dsat::host
