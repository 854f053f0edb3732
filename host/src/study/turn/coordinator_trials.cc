// How trials start and end: the coordinator's answers to what the runner reports.
#include <fmt/format.h>

#include <utility>

#include "plan/device_hours.h"
#include "study/turn/coordinator.h"
#include "study/watch/world_size.h"

namespace dsat::host {

void Coordinator::on_started(const TrialStart& start) {
  trials_.note_start(start);
  time_.trial_started(start.id, loop_.now());
  // Where and when it started may wait for the trial's end: a short trial costs the journal one commit.
  if (runner_.commit_delay().count() > 0) {
    trials_.mark_changed(start.id);
  } else {
    loop_.at(loop_.now() + kStartNoteDelay, [this, id = start.id] { trials_.mark_changed(id); });
  }
  observer_.on_trial_started(trials_[start.id].record);
  watch_budget();
}

void Coordinator::on_ended(const TrialEnd& end) {
  for (const std::string& warning : end.warnings) {
    if (script_.is_shown(warning)) log(Observer::Severity::warning, fmt::format("trial {}: {}", end.id, warning));
  }
  for (const std::string& warning : script_.add(end)) log(Observer::Severity::warning, warning);
  time_.trial_ended(end.id, loop_.now(), end.outcome == Outcome::completed);
  add_cost(end.id, end.ended_at);
  const bool was_to_end = trials_[end.id].state == TrialState::stopping;
  const bool interrupted = ending_ && ending_->resumable && end.outcome == Outcome::stopped;
  const bool may_repeat = !was_to_end && !is_spent(plan_.budget, spent_device_hours_);
  const bool rerun = may_repeat && end.infrastructure && failures_.grant_rerun(end.id);
  const bool restart = may_repeat && !rerun && end.outcome == Outcome::failed &&
                       failures_.grant_restart(end, plan_.max_restarts.value_or(0));
  if (!interrupted && !rerun && !restart) return end_trial(end);
  if (restart || rerun) runner_.run_elsewhere(end.id);
  trials_.run_again(end.id);  // under the same id; its strategy does not learn of it
  if (rerun || restart) log(Observer::Severity::warning, fmt::format("trial {}: {}; run again", end.id, end.reason));
}

// Adds the run that ended then.
void Coordinator::add_cost(uint64_t id, const std::string& ended_at) {
  spent_device_hours_ += device_hours(trials_[id].record, ended_at);
  spent_changed_ = true;
}

void Coordinator::end_trial(TrialEnd end) {
  const uint64_t id = end.id;
  trials_.end(std::move(end), loop_.now());
  learn_from(trials_[id]);
  best_.add(trials_[id]);
  observer_.on_trial_ended(trials_[id].record);
}

// Duplicates of a trial that its strategy knows end as it did, with events of their own.
void Coordinator::answer_duplicates(uint64_t original) {
  for (const uint64_t id : trials_.answer_duplicates(original, loop_.utc_now(), loop_.now())) {
    observer_.on_trial_ended(trials_[id].record);
  }
}

// What a trial shows of its script, and of the machine: the device's memory, and how many processes it really has.
void Coordinator::learn_from(const Trial& trial) {
  steps_.add(trial);
  if (!trial.end) return;
  device_memory_.learn(trial.end->device_memory_bytes);
  if (const auto doubt = doubt_.add(trial, profile_)) log(Observer::Severity::warning, *doubt);
  try {
    const std::string warning = adopt_world_size(plan_, trial);
    if (warning.empty()) return;
    log(Observer::Severity::warning, warning);
    own_ = own_configuration(plan_);
  } catch (const Error& error) {
    end_study(StudyStatus::no_best, error.what());
  }
}

}  // namespace dsat::host
