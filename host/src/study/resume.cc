// Taking up a study: read the journal, restore the strategy, put open trials back in the queue.
#include <algorithm>
#include <deque>
#include <utility>

#include "study/admission.h"
#include "study/coordinator.h"

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

  journal_.begin();
  const Status status = take_up(events.value());
  if (!status.ok()) {
    journal_.rollback();
    return status;
  }
  for (const uint64_t id : dirty_) journal_.put_trial(trials_[id]);
  dirty_.clear();
  return journal_.commit();
}

Status Coordinator::take_up(std::vector<JournalEvent>& events) {
  const bool had_ended = journal_.meta("ended").value_or(Json()).is_object();
  profile_ = journal_.meta("profile").value_or(Json());
  infrastructure_reruns_ = journal_.meta("infrastructure_reruns").value_or(Json::array()).get<std::set<uint64_t>>();
  Status status = rewind_if_limit_raised(events);
  if (!status.ok()) return status;
  for (Trial& trial : trials_) {
    if (trial.end) learn_from(*trial.end, trial);
    Twins& twins = by_identity_[trial.identity];
    if (trial.can_answer() && !twins.answering) twins.answering = trial.id();
    if (trial.costs_a_run()) trial.earlier_runs = twins.runs++;
    if (trial.costs_a_run() && (trial.record.started() || !trial.record.outcome)) ++counted_trials_;
    fruitless_ = trial.costs_a_run() ? 0 : fruitless_ + 1;
  }
  if (!events.empty()) {
    phase_ = events.back().phase;
    last_seq_ = last_state_seq_ = events.back().seq;
    status = replay(events);
    if (!status.ok()) return status;
  }
  recall(events);
  open_trials_ = static_cast<int>(std::count_if(trials_.begin(), trials_.end(), [this](const Trial& trial) {
    return trial.phase == phase_ && trial.state != TrialState::delivered;
  }));
  requeue_trials();
  // A crash may have come between a trial's end and the end of the study that it means.
  if (!had_ended && !events.empty() && events.back().event.kind == StrategyEvent::Kind::exited) {
    watch_failures(trials_[events.back().event.trial]);
  }
  for (StrategyPlan* strategy : {&plan_.profiler, &plan_.searcher}) {
    if (strategy->plugin.state_version == strategy->journalled_state_version) continue;
    journal_.remove_states(strategy == &plan_.profiler ? Phase::profiler : Phase::searcher);
    strategy->journalled_state_version = strategy->plugin.state_version;
  }
  journal_.put_meta("plan", to_json(plan_));
  journal_.put_meta("settings", settings_of(plan_));
  journal_.put_meta("ended", nullptr);
  best_stale_ = true;
  return {};
}

// What the events tell beyond the trials' own records: who is to be stopped, who failed in a row, who was told half.
void Coordinator::recall(const std::vector<JournalEvent>& events) {
  for (const JournalEvent& entry : events) {
    if (entry.event.kind == StrategyEvent::Kind::exited) count_failure(trials_[entry.event.trial]);
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::stop_trial && !trials_[*op.trial].record.outcome) to_stop_.insert(*op.trial);
    }
  }
  if (!events.empty() && events.back().event.kind == StrategyEvent::Kind::result) {
    result_told_ = events.back().event.trial;
  }
}

// With a higher limit, the first answer that the old limit shaped (a refusal, or the finish that followed) is taken
// back, and so are all later ones: those events happen again, and the strategy goes on from there. Trials that those
// answers had asked for and that ran stay: asked for again, they answer at no cost.
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
  }
  while (trials_.size() > first_taken_back && !trials_.back().record.started()) trials_.pop_back();
  for (uint64_t id = first_taken_back; id < trials_.size(); ++id) disown(trials_[id]);
  for (auto it = first; it != events.end(); ++it) {
    if (it->event.kind != StrategyEvent::Kind::start && it->event.trial < first_taken_back)
      untell(trials_[it->event.trial]);
  }
  journal_.remove_events_from(first->seq);
  journal_.remove_trials_from(trials_.size());
  events.erase(first, events.end());
  return {};
}

// Nobody has asked for this trial any more.
void Coordinator::disown(Trial& trial) {
  dirty_.insert(trial.id());
  trial.state = TrialState::delivered;
  if (trial.record.outcome) return;
  trial.record.outcome = Outcome::stopped;
  trial.record.reason = "taken back, with the answer that asked for it";
}

// The strategy is to hear of this trial again. One that only its finish had stopped runs again.
void Coordinator::untell(Trial& trial) {
  dirty_.insert(trial.id());
  trial.state = TrialState::ended;
  if (trial.record.outcome != Outcome::stopped) return;
  trial.state = TrialState::waiting;
  trial.record.outcome.reset();
  trial.record.reason.clear();
  trial.record.ended_at.clear();
  trial.end.reset();
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
  std::deque<std::optional<uint64_t>> answers;
  uint64_t known = 0;  // ids given out so far, then
  Strategy::Callbacks callbacks = live_callbacks();
  callbacks.create_trial = [&answers, &known](const Op&) -> std::optional<uint64_t> {
    if (answers.empty()) return std::nullopt;
    const std::optional<uint64_t> answer = answers.front();
    answers.pop_front();
    if (answer) known = *answer + 1;
    return answer;
  };
  callbacks.knows_trial = [&known](uint64_t id) { return id < known; };
  callbacks.log = [](int, std::string_view) {};  // said already, then

  const Result<size_t> restored = restore_state(events, callbacks);
  if (!restored.ok()) return restored.status();
  for (const Trial& trial : trials_) known += trial.phase < phase ? 1 : 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const JournalEvent& entry = *events[i];
    answers.clear();
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::create_trial) answers.push_back(op.refused ? std::nullopt : op.trial);
    }
    if (i < restored.value()) {
      for (const std::optional<uint64_t>& answer : answers) known = answer ? *answer + 1 : known;
    } else {
      const Result<std::vector<Op>> ops = strategy_->handle(entry.event);
      if (!ops.ok()) return ops.status();
      const std::string now = Journal::text_of(to_json(ops.value()));
      if (now != entry.ops_text) return mismatch(entry, now);
    }
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

// Opens the strategy of these events and gives it its last saved state. Returns how many events that state contains; a
// state that cannot be used contains none, and all of them are replayed.
Result<size_t> Coordinator::restore_state(const std::vector<const JournalEvent*>& events,
                                          const Strategy::Callbacks& callbacks) {
  const Phase phase = events.front()->phase;
  const StrategyPlan& chosen = phase == Phase::profiler ? plan_.profiler : plan_.searcher;
  const auto reopen = [&] {
    Status opened = open_strategy(phase);
    if (opened.ok()) strategy_->redirect(callbacks);
    return opened;
  };
  Status opened = reopen();
  if (!opened.ok()) return opened;
  strategy_started_ = true;
  const std::optional<SavedState> saved = journal_.state(phase, events.back()->seq);
  const bool usable = chosen.plugin.state_version == chosen.journalled_state_version;
  if (!saved || !usable || !strategy_->can_save()) return size_t{0};
  Json study = events.front()->event.study;
  study["limits"]["max_trials"] = plan_.max_trials;
  const Status restored = strategy_->restore(study, saved->state);
  if (!restored.ok()) {
    log(Observer::Severity::warning, restored.message() + "; its events are replayed instead");
    strategy_.reset();
    opened = reopen();
    if (!opened.ok()) return opened;
    return size_t{0};
  }
  const auto later =
      std::find_if(events.begin(), events.end(), [&](const JournalEvent* entry) { return entry->seq > saved->seq; });
  return static_cast<size_t>(later - events.begin());
}

// Every trial goes on from where it stood. One that ran when the host died may have ended well all the same: then its
// result file is there, complete.
void Coordinator::requeue_trials() {
  for (Trial& trial : trials_) {
    const uint64_t id = trial.id();
    if (trial.state == TrialState::running) {
      std::optional<TrialEnd> left = runner_.recover(spec_of(trial));
      if (left) {
        end_trial(trial, std::move(*left));
        continue;
      }
      trial.state = TrialState::waiting;
      dirty_.insert(id);
    }
    if (trial.state == TrialState::waiting && trial.record.duplicate_of) {
      duplicates_.emplace(*trial.record.duplicate_of, id);
    } else if (trial.state == TrialState::waiting) {
      waiting_.insert(id);
    } else if (trial.state == TrialState::ended) {
      const bool at_once = trial.record.duplicate_of || trial.record.outcome == Outcome::invalid_config;
      (at_once ? immediate_ : ended_).insert(id);
      ended_when_[id] = loop_.now();
    }
  }
  stop_open_trials();
}

}  // namespace dsat::host
