// How trials start and end: what is recorded, learned and passed on.
#include <algorithm>
#include <utility>

#include "dsat/config/batch.h"
#include "dsat/config/world.h"
#include "study/admission.h"
#include "study/coordinator.h"

namespace dsat::host {

void Coordinator::on_started(const TrialStart& start) {
  Trial& trial = trials_[start.id];
  trial.record.slots = start.slots;
  trial.record.started_at = start.started_at;
  // Where and when it started may wait for the trial's end: a short trial costs the journal one commit.
  if (runner_.commit_delay().count() > 0) {
    dirty_.insert(start.id);
  } else {
    loop_.at(loop_.now() + kStartNoteDelay, [this, id = start.id] { dirty_.insert(id); });
  }
  observer_.on_trial_started(trial.record);
}

void Coordinator::on_ended(const TrialEnd& end) {
  Trial& trial = trials_[end.id];
  running_.erase(end.id);
  to_stop_.erase(end.id);
  const bool was_to_end = stopping_.erase(end.id) != 0;
  dirty_.insert(end.id);
  for (const std::string& warning : end.warnings) {
    log(Observer::Severity::warning, "trial " + std::to_string(end.id) + ": " + warning);
  }
  const bool interrupted = ending_ && ending_->resumable && end.outcome == Outcome::stopped;
  const bool rerun = end.infrastructure && !was_to_end && infrastructure_reruns_.insert(end.id).second;
  if (interrupted || rerun) {
    // Its strategy hears nothing of it: it runs again, under the same id.
    trial.state = TrialState::waiting;
    waiting_.insert(end.id);
    reruns_changed_ |= rerun;
    if (rerun) log(Observer::Severity::warning, "trial " + std::to_string(end.id) + ": " + end.reason + "; run again");
    return;
  }
  end_trial(trial, end);
}

void Coordinator::end_trial(Trial& trial, TrialEnd end) {
  TrialRecord& record = trial.record;
  record.outcome = end.outcome;
  record.reason = end.reason;
  record.metrics = end.outcome == Outcome::completed ? std::move(end.metrics) : Json();
  end.metrics = Json();  // the record has them
  record.peak_bytes = end.peak_bytes;
  record.ended_at = end.ended_at;
  trial.state = TrialState::ended;
  learn_from(end, trial);
  trial.end = std::move(end);
  (record.duplicate_of ? immediate_ : ended_).insert(trial.id());
  ended_when_[trial.id()] = loop_.now();
  dirty_.insert(trial.id());
  const auto twins = by_identity_.find(trial.identity);
  if (twins != by_identity_.end() && twins->second.answering == trial.id() && !trial.can_answer()) {
    const auto next = std::find_if(trials_.begin(), trials_.end(), [&trial](const Trial& other) {
      return other.can_answer() && other.identity == trial.identity;
    });
    twins->second.answering = next == trials_.end() ? std::nullopt : std::optional<uint64_t>(next->id());
  }
  compare_with_best(trial);
  observer_.on_trial_ended(record);
}

// What a trial tells about the machine: the device's memory, and how many processes it really has.
void Coordinator::learn_from(const TrialEnd& end, const Trial& trial) {
  if (!device_memory_bytes_ && end.device_memory_bytes) device_memory_bytes_ = end.device_memory_bytes;
  if (!trial.model_info || !end.world_size || *end.world_size < 1) return;
  try {
    const int64_t size = config::data_parallel_size(*end.world_size, plan_.base_config);
    const auto world = config::tuned_world(trial.record.config);
    if (world && *end.world_size != world->size()) {
      const std::string asked = plan_.slots.sizes_are_tuned()
                                    ? "num_gpus and num_nodes ask for " + std::to_string(world->size()) +
                                          ": the command does not follow them, so they cannot be tuned"
                                    : "a trial has " + std::to_string(world->size()) +
                                          " slots: give --slots-per-trial " + std::to_string(*end.world_size);
      return end_study(StudyStatus::no_best,
                       "the profile trial ran with " + std::to_string(*end.world_size) + " processes where " + asked);
    }
    if (world || size == plan_.data_parallel_size) return;
    log(Observer::Severity::warning, "the profile trial ran with a data-parallel size of " + std::to_string(size) +
                                         ", not " + std::to_string(plan_.data_parallel_size) +
                                         ": batch sizes follow it");
    derive_space(plan_, size);
    baseline_identity_ = admit(plan_, Json::object()).identity;
  } catch (const std::exception& e) {
    end_study(StudyStatus::no_best,
              std::string("the profile trial's world size does not fit the configuration: ") + e.what());
  }
}

// Keeps the trials that failed in a row and with the same last line.
void Coordinator::count_failure(const Trial& trial) {
  if (!trial.costs_a_run()) return;
  if (trial.record.outcome != Outcome::failed || !trial.end || trial.end->last_line.empty()) {
    return same_failures_.clear();
  }
  const bool alike = same_failures_.empty() || trials_[same_failures_.back()].end->last_line == trial.end->last_line;
  if (!alike) same_failures_.clear();
  same_failures_.push_back(trial.id());
}

// A script that fails in the same way whatever it is given is not the search's business.
void Coordinator::watch_failures(const Trial& trial) {
  if (ending_ || !trial.costs_a_run() || !trial.end) return;
  const Outcome outcome = *trial.record.outcome;
  const bool failed = outcome == Outcome::failed || outcome == Outcome::timed_out;
  if (failed && trial.record.kind == TrialKind::profile) {
    return end_study(StudyStatus::no_best, "the profile trial failed: " + trial.record.reason);
  }
  if (same_failures_.size() < kSameFailures || same_failures_.back() != trial.id()) return;
  std::set<int64_t> micro_batches;
  for (const uint64_t id : same_failures_) {
    micro_batches.insert(trials_[id].record.config.value(config::kMicroBatchKey, int64_t{0}));
  }
  if (micro_batches.size() < 2) return;
  end_study(StudyStatus::no_best,
            std::to_string(same_failures_.size()) + " trials in a row failed in the same way: " + trial.end->last_line);
}

// Duplicates of a trial that its strategy now knows hear the same, as events of their own.
void Coordinator::release_duplicates(const Trial& original) {
  const auto [first, last] = duplicates_.equal_range(original.id());
  for (auto it = first; it != last; ++it) {
    Trial& twin = trials_[it->second];
    twin.record.outcome = original.record.outcome;
    twin.record.reason = original.record.reason;
    twin.record.metrics = original.record.metrics;
    twin.record.peak_bytes = original.record.peak_bytes;
    twin.record.ended_at = loop_.utc_now();
    twin.end = original.end;
    twin.state = TrialState::ended;
    immediate_.insert(twin.id());
    dirty_.insert(twin.id());
    observer_.on_trial_ended(twin.record);
  }
  duplicates_.erase(original.id());
}

// The next trial to tell of. Ended ones are told in the order of their ids; one whose elders still run waits for them,
// but not for long.
std::optional<uint64_t> Coordinator::ready_trial() {
  if (!immediate_.empty()) return *immediate_.begin();
  if (ended_.empty()) return std::nullopt;
  const uint64_t id = *ended_.begin();
  // One that waits to run again (the machine's fault, or the host's own end) counts as running.
  const bool elder_runs =
      (!running_.empty() && *running_.begin() < id) || (!waiting_.empty() && *waiting_.begin() < id);
  if (!elder_runs) return id;
  const auto patience = ended_when_[id] + kReorderWindow;
  if (loop_.now() >= patience) return id;
  loop_.cancel(reorder_timer_);
  reorder_timer_ = loop_.at(patience, [] {});
  return std::nullopt;
}

}  // namespace dsat::host
