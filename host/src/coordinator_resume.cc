// Taking up a study: read the journal, restore the strategy, put open trials back in the queue.
#include <algorithm>
#include <utility>

#include "admission.h"
#include "coordinator.h"

namespace dsat::host {
namespace {

bool ends_or_is_refused(const JournalEvent& entry) {
  return std::any_of(entry.ops.begin(), entry.ops.end(),
                     [](const Op& op) { return op.kind == Op::Kind::finish || op.refused; });
}

Status mismatch(const JournalEvent& entry, const std::string& now) {
  return Status::internal("replay_mismatch: event " + std::to_string(entry.seq) + " was answered with " +
                          entry.ops_text + " and is now answered with " + now +
                          "; the plugin has changed or is not deterministic; everything is kept, start a new study");
}

}  // namespace

Status Coordinator::resume() {
  Result<std::vector<Trial>> trials = journal_.trials();
  if (!trials.ok()) return trials.status();
  trials_ = std::move(trials).value();
  Result<std::vector<JournalEvent>> events = journal_.events();
  if (!events.ok()) return events.status();
  profile_ = journal_.meta("profile").value_or(Json());

  journal_.begin();
  Status status = rewind_if_limit_raised(events.value());
  for (const Trial& trial : trials_) {
    if (trial.end) learn_from(*trial.end, trial);
    if (trial.costs_a_run() && trial.record.outcome != Outcome::stopped) {
      by_identity_.emplace(trial.identity, trial.id());
    }
    if (trial.costs_a_run() && (trial.record.started() || !trial.record.outcome)) ++counted_trials_;
  }
  if (!events->empty()) {
    phase_ = events->back().phase;
    last_seq_ = last_state_seq_ = events->back().seq;
  }
  if (status.ok()) status = replay(events.value());
  requeue_trials();
  journal_.put_meta("ended", nullptr);
  best_stale_ = true;
  const Status committed = journal_.commit();
  return status.ok() ? committed : status;
}

// With a higher limit, the first answer that the old limit shaped (a refusal, or the finish that followed) is taken
// back, and so are all later ones: those events happen again, and the strategy goes on from there.
Status Coordinator::rewind_if_limit_raised(std::vector<JournalEvent>& events) {
  const int old_limit = journal_.meta("max_trials").value_or(Json(plan_.max_trials)).get<int>();
  journal_.put_meta("max_trials", plan_.max_trials);
  if (plan_.max_trials <= old_limit) return {};
  const auto first = std::find_if(events.begin(), events.end(), [](const JournalEvent& entry) {
    return entry.phase == Phase::searcher && ends_or_is_refused(entry);
  });
  if (first == events.end()) return {};
  uint64_t first_taken_back = trials_.size();
  for (auto it = first; it != events.end(); ++it) {
    for (const Op& op : it->ops) {
      if (op.kind == Op::Kind::create_trial && op.trial) first_taken_back = std::min(first_taken_back, *op.trial);
    }
    if (it->event.kind != StrategyEvent::Kind::start && it->event.trial < trials_.size()) {
      trials_[it->event.trial].state = TrialState::ended;
      dirty_.insert(it->event.trial);
    }
  }
  for (uint64_t id = first_taken_back; id < trials_.size(); ++id) {
    if (trials_[id].record.started()) return {};  // it went on after all: nothing to take back
  }
  journal_.remove_events_from(first->seq);
  journal_.remove_trials_from(first_taken_back);
  trials_.resize(first_taken_back);
  dirty_.erase(dirty_.lower_bound(first_taken_back), dirty_.end());
  events.erase(first, events.end());
  return {};
}

Status Coordinator::replay(const std::vector<JournalEvent>& events) {
  std::vector<const JournalEvent*> of_phase;
  for (const JournalEvent& entry : events) {
    if (entry.phase == phase_) of_phase.push_back(&entry);
  }
  if (of_phase.empty()) return {};
  if (phase_ == Phase::searcher) derive_space(plan_, plan_.data_parallel_size);
  return replay_phase(phase_, of_phase);
}

// Restores the saved state if there is one, and hands over the later events again, giving the answers of then.
Status Coordinator::replay_phase(Phase phase, const std::vector<const JournalEvent*>& events) {
  const StrategyPlan& chosen = phase == Phase::profiler ? plan_.profiler : plan_.searcher;
  std::deque<std::optional<uint64_t>> answers;
  Strategy::Callbacks callbacks = live_callbacks();
  callbacks.create_trial = [&answers](const Op&) -> std::optional<uint64_t> {
    if (answers.empty()) return std::nullopt;
    const std::optional<uint64_t> answer = answers.front();
    answers.pop_front();
    return answer;
  };
  callbacks.log = [](int, std::string_view) {};  // said already, then

  Status opened = open_strategy(phase);
  if (!opened.ok()) return opened;
  strategy_->redirect(std::move(callbacks));
  strategy_started_ = true;

  size_t next = 0;
  const std::optional<SavedState> saved = journal_.state(phase, events.back()->seq);
  if (saved && strategy_->can_save() && chosen.plugin.state_version == chosen.journalled_state_version) {
    Json study = events.front()->event.study;
    study["limits"]["max_trials"] = plan_.max_trials;
    const Status restored = strategy_->restore(study, saved->state);
    if (!restored.ok()) return restored;
    while (next < events.size() && events[next]->seq <= saved->seq) ++next;
  }
  for (; next < events.size(); ++next) {
    const JournalEvent& entry = *events[next];
    answers.clear();
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::create_trial) answers.push_back(op.refused ? std::nullopt : op.trial);
    }
    const Result<std::vector<Op>> ops = strategy_->handle(entry.event);
    if (!ops.ok()) return ops.status();
    const std::string now = Journal::text_of(to_json(ops.value()));
    if (now != entry.ops_text) return mismatch(entry, now);
    for (const Op& op : entry.ops) {
      if (op.kind != Op::Kind::finish) continue;
      strategy_finished_ = true;
      finish_reason_ = op.reason;
      if (phase == Phase::searcher) believed_best_ = op.trial;
    }
  }
  strategy_->redirect(live_callbacks());
  return {};
}

// Every trial goes on from where it stood. One that ran when the host died may have ended well all the same: then its
// result file is there, complete.
void Coordinator::requeue_trials() {
  for (Trial& trial : trials_) {
    const uint64_t id = trial.id();
    if (trial.state == TrialState::running) {
      const TrialSpec spec{id, trial.record.attempt, config_to_run(plan_, trial.record.config), trial.model_info};
      std::optional<TrialEnd> left = runner_.recover(spec);
      if (left) {
        end_trial(trial, std::move(*left));
        ended_when_[id] = Loop::Clock::now();
        continue;
      }
      trial.state = TrialState::waiting;
      dirty_.insert(id);
    }
    if (trial.state == TrialState::waiting && trial.record.duplicate_of) {
      duplicates_.emplace(*trial.record.duplicate_of, id);
    } else if (trial.state == TrialState::waiting) {
      waiting_.push_back(id);
    } else if (trial.state == TrialState::ended) {
      const bool at_once = trial.record.duplicate_of || trial.record.outcome == Outcome::invalid_config;
      (at_once ? immediate_ : ended_).insert(id);
    }
  }
  stop_open_trials();
}

}  // namespace dsat::host
