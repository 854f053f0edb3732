// Each change of a trial goes through change_state: it checks the change, moves the trial from queue to queue and marks
// it as changed.
#include "study/state/trial_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "dsat/error.h"

namespace dsat::host {
namespace {

const char* name_of(TrialState state) {
  constexpr const char* kNames[] = {"waiting", "running", "stopping", "ended", "delivered"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace

bool may_follow(TrialState from, TrialState to) {
  switch (from) {
    case TrialState::waiting:  // ended: stopped before it ran, or its original answers for it
      return to == TrialState::running || to == TrialState::ended;
    case TrialState::running:  // waiting: it runs again, or was not started after all
      return to == TrialState::stopping || to == TrialState::ended || to == TrialState::waiting;
    case TrialState::stopping:  // waiting: the study is interrupted, and it runs again when the study is resumed
      return to == TrialState::ended || to == TrialState::waiting;
    case TrialState::ended:
      return to == TrialState::delivered;
    case TrialState::delivered:
      return false;
  }
  return false;
}

TrialTable::TrialTable(std::vector<Trial> trials, Time now) : trials_(std::move(trials)) {
  for (Trial& trial : trials_) {
    count(trial);
    // A trial that was stopped before it ran counts against no limit.
    if (trial.costs_a_run() && (trial.record.started() || !trial.record.outcome)) ++counted_;
    enter_queue(trial, now);
  }
}

uint64_t TrialTable::checked(uint64_t id) const {
  if (id < trials_.size()) return id;
  throw Error(DSAT_INTERNAL, fmt::format("there is no trial {}; the journal is damaged, or the host has a defect", id));
}

bool TrialTable::any_open() const {
  return !waiting_.empty() || !duplicates_.empty() || !running_.empty() || !ended_without_run_.empty() ||
         !ended_.empty();
}

std::optional<uint64_t> TrialTable::answering(const std::string& identity) const {
  const auto found = configurations_.find(identity);
  return found == configurations_.end() ? std::nullopt : found->second.answering;
}

uint32_t TrialTable::runs_of(const std::string& identity) const {
  const auto found = configurations_.find(identity);
  return found == configurations_.end() ? 0 : found->second.runs;
}

void TrialTable::count(Trial& trial) {
  Configuration& configuration = configurations_[trial.identity];
  // The first trial of a configuration answers for the later ones: all of them show its result.
  if (trial.can_answer() && !configuration.answering) configuration.answering = trial.id();
  if (trial.costs_a_run()) trial.earlier_runs = configuration.runs++;
  fruitless_ = trial.costs_a_run() ? 0 : fruitless_ + 1;
}

const Trial& TrialTable::add(Trial trial, Time now) {
  trial.state = trial.record.outcome ? TrialState::ended : TrialState::waiting;
  trials_.push_back(std::move(trial));
  Trial& added = trials_.back();
  count(added);
  if (added.costs_a_run()) ++counted_;
  enter_queue(added, now);
  changed_.insert(added.id());
  return added;
}

void TrialTable::start(uint64_t id) {
  Trial& trial = get(id);
  change_state(trial, TrialState::running, {});
  ++trial.record.attempt;
  // Slots and start belong to the attempt before, until this attempt has begun.
  trial.record.slots.clear();
  trial.record.started_at.clear();
}

// The mark as changed stays as it is, since a resumed study runs the trial whether the journal has it as waiting or as
// running. A trial that is not in the journal yet must still be written.
void TrialTable::take_back_start(uint64_t id) {
  const bool was_changed = changed_.count(id) != 0;
  change_state(get(id), TrialState::waiting, {});
  if (!was_changed) changed_.erase(id);
}

// The trial is not marked as changed: the study decides when a start is worth a commit of its own.
void TrialTable::note_start(const TrialStart& start) {
  TrialRecord& record = get(start.id).record;
  record.slots = start.slots;
  record.started_at = start.started_at;
}

void TrialTable::run_again(uint64_t id) {
  stop_requests_.erase(id);
  change_state(get(id), TrialState::waiting, {});
}

void TrialTable::end(TrialEnd end, Time now) {
  Trial& trial = get(end.id);
  // A trial that was stopped before it ran gives its place below the trial limit back.
  if (trial.state == TrialState::waiting && trial.costs_a_run() && !trial.record.started()) --counted_;
  stop_requests_.erase(end.id);
  take_end(trial, std::move(end));
  change_state(trial, TrialState::ended, now);
  if (trial.can_answer() || answering(trial.identity) != trial.id()) return;
  // The trial answered for its configuration but measured nothing, so the next trial that can answer takes over.
  const auto next = std::find_if(trials_.begin(), trials_.end(), [&trial](const Trial& other) {
    return other.can_answer() && other.identity == trial.identity;
  });
  configurations_[trial.identity].answering =
      next == trials_.end() ? std::nullopt : std::optional<uint64_t>(next->id());
}

void TrialTable::deliver(uint64_t id) { change_state(get(id), TrialState::delivered, {}); }

std::vector<uint64_t> TrialTable::answer_duplicates(uint64_t original, const std::string& ended_at, Time now) {
  std::vector<uint64_t> answered;
  const auto [first, last] = duplicates_.equal_range(original);
  std::transform(first, last, std::back_inserter(answered), [](const auto& pair) { return pair.second; });
  const Trial& from = get(original);
  for (const uint64_t id : answered) {
    Trial& duplicate = get(id);
    duplicate.record.outcome = from.record.outcome;
    duplicate.record.reason = from.record.reason;
    duplicate.record.metrics = from.record.metrics;
    duplicate.record.peak_bytes = from.record.peak_bytes;
    duplicate.record.peak_source = from.record.peak_source;
    duplicate.record.peak_above_bytes = from.record.peak_above_bytes;
    duplicate.record.allocator_retries = from.record.allocator_retries;
    duplicate.record.curve = from.record.curve;
    duplicate.record.ended_at = ended_at;
    duplicate.end = from.end;
    change_state(duplicate, TrialState::ended, now);
  }
  return answered;
}

TrialTable::Next TrialTable::next_to_deliver(Time now) const {
  if (!ended_without_run_.empty()) return {*ended_without_run_.begin(), {}};
  if (ended_.empty()) return {};
  const auto& [id, ended_at] = *ended_.begin();
  // A trial that waits to run again (the machine's fault, or the host's own end) counts as running.
  const bool older_one_runs =
      (!running_.empty() && *running_.begin() < id) || (!waiting_.empty() && *waiting_.begin() < id);
  if (!older_one_runs || now >= ended_at + kReorderWindow) return {id, {}};
  return {{}, ended_at + kReorderWindow};
}

void TrialTable::request_stop_of_open() {
  stop_requests_.insert(waiting_.begin(), waiting_.end());
  request_stop_of_running();
}

std::vector<uint64_t> TrialTable::take_stops_of_waiting() {
  std::vector<uint64_t> stops;
  if (stop_requests_.empty()) return stops;
  std::set_intersection(waiting_.begin(), waiting_.end(), stop_requests_.begin(), stop_requests_.end(),
                        std::back_inserter(stops));
  for (const auto& [original, duplicate] : duplicates_) {
    if (stop_requests_.count(duplicate) != 0) stops.push_back(duplicate);
  }
  for (const uint64_t id : stops) stop_requests_.erase(id);
  return stops;
}

std::vector<uint64_t> TrialTable::take_stops_of_running() {
  std::vector<uint64_t> stops;
  std::set_intersection(running_.begin(), running_.end(), stop_requests_.begin(), stop_requests_.end(),
                        std::back_inserter(stops));
  stop_requests_.clear();
  for (const uint64_t id : stops) {
    if (get(id).state == TrialState::running) change_state(get(id), TrialState::stopping, {});
  }
  return stops;
}

std::set<uint64_t> TrialTable::take_changed() { return std::exchange(changed_, {}); }

void TrialTable::change_state(Trial& trial, TrialState to, Time now) {
  if (!may_follow(trial.state, to)) {
    throw Error(DSAT_INTERNAL, fmt::format("trial {} cannot go from {} to {} (host defect)", trial.id(),
                                           name_of(trial.state), name_of(to)));
  }
  leave_queue(trial);
  trial.state = to;
  enter_queue(trial, now);
  if (to != TrialState::stopping) changed_.insert(trial.id());  // to the journal it still runs
}

void TrialTable::enter_queue(const Trial& trial, Time now) {
  const uint64_t id = trial.id();
  switch (trial.state) {
    case TrialState::waiting:
      if (trial.record.duplicate_of) {
        duplicates_.emplace(*trial.record.duplicate_of, id);
      } else {
        waiting_.insert(id);
      }
      break;
    case TrialState::running:
    case TrialState::stopping:
      running_.insert(id);
      break;
    case TrialState::ended:
      if (trial.costs_a_run()) {
        ended_.emplace(id, now);
      } else {
        ended_without_run_.insert(id);
      }
      break;
    case TrialState::delivered:
      break;
  }
}

void TrialTable::leave_queue(const Trial& trial) {
  const uint64_t id = trial.id();
  waiting_.erase(id);
  running_.erase(id);
  ended_without_run_.erase(id);
  ended_.erase(id);
  if (!trial.record.duplicate_of) return;
  const auto [first, last] = duplicates_.equal_range(*trial.record.duplicate_of);
  const auto own = std::find_if(first, last, [id](const auto& pair) { return pair.second == id; });
  if (own != last) duplicates_.erase(own);
}

}  // namespace dsat::host
