// The turn of a study: deliver what is ready, choose what to start, commit, start and stop.
#include "study/turn/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/guarded.h"
#include "study/state/admission.h"
#include "study/state/phases.h"
#include "study/turn/conclusion.h"
#include "study/turn/new_trials.h"
#include "study/turn/strategy_events.h"

namespace dsat::host {
namespace {

// The end of a run that a crash cut off: the time of its last write, but within the trial's time limit, since a copied
// folder has later times. Empty: unknown.
std::string end_of_cut_off(const TrialRecord& record, const std::string& written_at, std::chrono::milliseconds limit) {
  const auto start = parse_rfc3339(record.started_at), written = parse_rfc3339(written_at);
  return start && written ? format_rfc3339(std::min(*written, *start + limit)) : "";
}

// The ends of the trials that ended without the host, read from their folders. The other trials still run, or wait to
// run again.
std::vector<TrialEnd> find_ended(StudyState& state, Runner& runner) {
  std::vector<TrialEnd> ends;
  const std::set<uint64_t> were_running = state.trials.running();
  for (const uint64_t id : were_running) {
    const TrialSpec spec = spec_of(state.plan, state.trials[id], state.has_train_batch);
    std::optional<TrialEnd> end = runner.find_end(spec);
    if (end) {
      ends.push_back(std::move(*end));
    } else if (!runner.adopt(spec)) {
      const std::string written_at = runner.last_written_at(spec);
      state.add_cost(id, end_of_cut_off(state.trials[id].record, written_at, state.plan.trial_timeout));
      const bool is_to_stop = state.trials.is_to_stop(id);
      state.trials.run_again(id);
      if (is_to_stop) state.trials.request_stop(id);
    }
  }
  return ends;
}

}  // namespace

Coordinator::Coordinator(StudyState state, const Surroundings& surroundings)
    : state_(std::move(state)),
      turns_(surroundings.journal),
      journal_(turns_.journal()),
      runner_(surroundings.runner),
      loop_(surroundings.loop),
      results_(surroundings.results),
      observer_(surroundings.observer),
      plugin_log_(surroundings.plugin_log),
      stop_level_(surroundings.stop_level),
      saved_states_(journal_, observer_),
      budgets_(state_, loop_, [this](const std::string& why) { end_study(StudyStatus::completed, why, true); }) {
  runner_.on_started = [this](const TrialStart& start) { on_started(start); };
  runner_.on_ended = [this](const TrialEnd& end) { on_ended(end); };
  runner_.on_notice = [this](const std::string& notice) { observer_.on_log(Observer::Severity::warning, notice); };
  runner_.on_closing = [this](const std::string& reason) { end_study(StudyStatus::interrupted, reason, true); };
  if (journal_.next_event() > 0) saved_states_.resume_at(journal_.next_event() - 1);
  loop_.on_wake([this] {
    plugin_log_.forward(observer_);
    check_stop_requests();
  });
}

StudyResult Coordinator::run() {
  if (state_.trials.size() > 0) recover_running();
  budgets_.begin();
  check_stop_requests();
  // A simulation's journal is not watched, since its clock is not the real one; the next commit finds a deleted
  // journal.
  if (runner_.commit_delay().count() == 0) {
    turns_.watch([this] { fail(Error(DSAT_INTERNAL, journal_.lost_text())); });
  }
  while (true) {
    turn();
    if (state_.ending && state_.trials.running().empty()) break;
    loop_.run_once();
  }
  return close();
}

void Coordinator::turn() {
  journal_.begin();
  deliver_events();
  fault_point("turn.events");
  std::vector<uint64_t> starts = choose_starts();
  refresh_best();
  try {
    const std::chrono::milliseconds delay = runner_.commit_delay();
    if (turns_.is_due(state_.ending ? std::chrono::milliseconds(0) : delay)) {
      if (saved_states_.due()) saved_states_.save(state_.run);
      state_.put_changes(journal_);
      turns_.commit(delay);
    }
  } catch (const std::exception& error) {
    // Nothing of this turn has happened, but trials that ran before it are stopped.
    for (const uint64_t id : starts) state_.trials.take_back_start(id);
    starts.clear();
    state_.run.strategy.reset();
    state_.ending.reset();  // the reason to end has not happened either
    fail(error);
  }
  fault_point("turn.before_act");
  start_and_stop(starts);
  fault_point("turn.after_act");
  try {
    write_results("", false);
  } catch (const std::exception& error) {
    fail(error);
  }
}

// Hands over all events that are ready. An event on which its strategy fails leaves nothing behind.
void Coordinator::deliver_events() {
  if (state_.ending) return;
  try {
    if (budgets_.is_search_over()) end_search(kTimeIsSpent, true);
    if (!state_.run.started && !state_.trials.running().empty()) return;  // trials of an earlier search are stopping
    do {
      if (!state_.run.started) start_strategy();
      while (!state_.ending && deliver_next()) {
      }
    } while (!state_.ending && advance_phase());
  } catch (const std::exception& error) {
    state_.run.strategy.reset();  // it gets no further event
    fail(error);
  }
}

void Coordinator::start_strategy() {
  // The trials of an earlier search have ended by now and are observations to this one.
  for (const Trial& trial : state_.trials.all()) {
    if (trial.state == TrialState::ended) state_.trials.deliver(trial.id());
  }
  const Phase phase = state_.run.phase;
  state_.run.strategy = open_strategy(state_.plan, phase, plugin_log_);
  if (phase == Phase::searcher) state_.derive_search_space();
  journal_.put_meta("own", state_.baseline.identity);
  state_.run.started = true;
  StrategyEvent start;
  start.study = is_of_plugin(phase) ? describe_study(state_) : state_.run.brief;
  handle(start);
}

// Delivers one more trial, if there is one whose turn it is.
bool Coordinator::deliver_next() {
  const TrialTable::Next next = state_.trials.next_to_deliver(loop_.now());
  if (next.id) deliver(*next.id);
  if (next.not_before) {
    loop_.cancel(reorder_timer_);
    reorder_timer_ = loop_.at(*next.not_before, [] {});
  }
  return next.id.has_value();
}

void Coordinator::deliver(uint64_t id) {
  const bool completed = state_.trials[id].record.outcome == Outcome::completed;
  if (completed && !state_.run.finish && state_.run.result_delivered != id) {
    handle(result_event(state_.trials[id],
                        state_.run.phase == Phase::profiler ? state_.device_memory.all() : std::nullopt));
  }
  handle(exit_event(state_.trials[id]));
  state_.trials.deliver(id);
  answer_duplicates(id);
  act_on(state_.watches.after_delivery(state_.trials[id], {state_.plan, state_.trials.all(), state_.profile}));
  refuse_waiting();
  budgets_.watch_device_hours();
  if (state_.run.phase != Phase::searcher) return;
  if (state_.watches.culprits.refuse_all(state_.plan.space)) {
    end_search("every configuration that is left has something that always failed", false);
  }
  const std::optional<int>& patience = state_.plan.early_stopping;
  if (!patience) return;
  const uint64_t first = state_.searches.current().counts_from;
  if (trials_since_best(state_.trials.all(), state_.plan.metric, state_.plan.maximise, first) < *patience) return;
  end_search(fmt::format("early stopping: {} trials without a better one", *patience), false);
}

// A strategy is done when it has finished, or asks for nothing more, and all its trials are delivered. True: the next
// one begins.
bool Coordinator::advance_phase() {
  if (state_.trials.any_open()) return false;
  act_on(findings_at_end_of_phase(state_));
  if (state_.ending) return false;
  std::optional<NextPhase> next = next_phase(state_);
  if (!next) {
    end_study(StudyStatus::completed, why_search_ended(state_.run.finish));
    return false;
  }
  state_.run = StrategyRun();
  state_.run.phase = next->phase;
  state_.run.brief = std::move(next->brief);
  saved_states_.begin_phase();
  return true;
}

// Handles one event: the strategy answers it, and its ops take effect.
void Coordinator::handle(const StrategyEvent& event) {
  const Phase phase = state_.run.phase;
  NewTrials new_trials(state_.plan, state_.trials, state_.watches.culprits, phase, trial_limit(phase, state_),
                       state_.baseline.identity, loop_);
  const bool is_delivered = phase != Phase::searcher || !state_.searches.was_ended_by_host();
  const std::vector<Op> ops = is_delivered ? state_.run.strategy->handle(event, new_trials) : std::vector<Op>();
  saved_states_.note_event(journal_.append_event(phase, event, ops));
  apply(new_trials.take(), ops);
}

void Coordinator::apply(std::vector<Trial> new_trials, const std::vector<Op>& ops) {
  if (!new_trials.empty()) state_.run.idle_since_restored = false;
  for (Trial& trial : new_trials) {
    const Trial& added = state_.trials.add(std::move(trial), loop_.now());
    if (added.record.outcome) {
      observer_.on_trial_ended(added.record);
    } else if (!added.record.duplicate_of) {
      observer_.on_trial_submitted(added.record);
    } else if (state_.trials[*added.record.duplicate_of].state == TrialState::delivered) {
      answer_duplicates(*added.record.duplicate_of);
    }
  }
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::stop_trial) {
      state_.trials.request_stop(*op.trial);
    } else if (op.kind == Op::Kind::set_profile) {
      state_.profile = with_engine_version(op.profile, state_.trials.all());
      journal_.put_meta("profile", state_.profile);
      observer_.on_profile(state_.profile);
    } else if (op.kind == Op::Kind::finish) {
      state_.run.finish = op;
      const Phase phase = state_.run.phase;
      state_.best.set_named(phase >= Phase::searcher ? op.trial : std::nullopt, phase > Phase::searcher);
    }
  }
  stop_waiting();
  if (state_.trials.fruitless() >= kFruitlessRequests) {
    end_study(StudyStatus::completed,
              fmt::format("space_exhausted: {} requests in a row were duplicates or invalid", kFruitlessRequests));
  }
}

void Coordinator::act_on(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.effect == Finding::Effect::no_best) {
      state_.best.forget();  // it may be the reason why no configuration counts
      end_study(StudyStatus::no_best, finding.text);
    } else {
      const bool is_note = finding.effect == Finding::Effect::note;
      observer_.on_log(is_note ? Observer::Severity::info : Observer::Severity::warning, finding.text);
    }
  }
}

// Takes trials from the queue while there is room, and marks them as running before they are: a crash between the
// journal's commit and the start costs a start, never a result.
std::vector<uint64_t> Coordinator::choose_starts() {
  std::vector<uint64_t> starts;
  std::vector<const Json*> configs;  // in order: a large trial is not passed by smaller ones for ever
  const auto limit = static_cast<size_t>(state_.plan.concurrency());
  while (!state_.ending && !state_.trials.waiting().empty() && state_.trials.running().size() < limit) {
    const uint64_t id = *state_.trials.waiting().begin();
    configs.push_back(&state_.trials[id].record.config);
    if (!runner_.has_room_for(configs)) {
      if (state_.trials.running().empty() && runner_.has_abandoned()) {
        fail(Error(DSAT_INTERNAL,
                   fmt::format("no slots are left for trial {}: processes that cannot be ended hold them; go on when "
                               "they are gone, or elsewhere",
                               id)));
      }
      break;
    }
    state_.trials.start(id);
    starts.push_back(id);
  }
  return starts;
}

void Coordinator::start_and_stop(const std::vector<uint64_t>& starts) {
  for (const uint64_t id : starts) {
    if (state_.ending) {
      state_.trials.take_back_start(id);  // an earlier trial of this turn could not be started
      continue;
    }
    try {
      const TrialSpec spec = spec_of(state_.plan, state_.trials[id], state_.has_train_batch);
      if (!is_found_in_folder(spec)) runner_.start(spec);
    } catch (const std::exception& error) {
      state_.trials.take_back_start(id);
      fail(error);
    }
  }
  for (const uint64_t id : state_.trials.take_stops_of_running()) runner_.stop(id, stop_level_acted_ > 1);
}

// After a repair the record of a trial may be lost while its folder still has the whole result.
bool Coordinator::is_found_in_folder(const TrialSpec& spec) {
  if (!state_.reuses_results) return false;
  const auto end = runner_.find_end(spec);
  if (!end || end->started_at.empty()) return false;
  on_started({spec.id, spec.attempt, {}, end->started_at});
  loop_.at(loop_.now(), [this, end = *end] { on_ended(end); });
  return true;
}

// Finds out what became of the trials that were running when the host died.
void Coordinator::recover_running() {
  journal_.begin();
  for (TrialEnd& end : find_ended(state_, runner_)) {
    // The crash may have cost the journal the trial's start; its folder has it.
    const TrialRecord& record = state_.trials[end.id].record;
    if (record.started_at.empty()) state_.trials.note_start({end.id, end.attempt, record.slots, end.started_at});
    if (state_.trials.is_to_stop(end.id)) {
      state_.add_cost(end.id, end.ended_at);
      end_trial(std::move(end));
    } else {
      on_ended(end);
    }
  }
  stop_waiting();
  if (state_.ending) state_.trials.request_stop_of_running();
  budgets_.watch_device_hours();  // runs that an interruption ended may have spent the budget
  state_.put_changes(journal_);
  journal_.commit();
}

void Coordinator::on_started(const TrialStart& start) {
  state_.trials.note_start(start);
  budgets_.trial_started(start.id);
  // Slots and start may be written with the trial's end: a short trial costs the journal one commit.
  if (runner_.commit_delay().count() > 0) {
    state_.trials.mark_changed(start.id);
  } else {
    loop_.at(loop_.now() + kStartNoteDelay, [this, id = start.id] { state_.trials.mark_changed(id); });
  }
  observer_.on_trial_started(state_.trials[start.id].record);
  budgets_.watch_device_hours();
}

void Coordinator::on_ended(const TrialEnd& end) {
  act_on(state_.watches.after_run(end));
  budgets_.trial_ended(end.id, end.outcome == Outcome::completed);
  state_.add_cost(end.id, end.ended_at);
  const bool interrupted = state_.ending && state_.ending->resumable && end.outcome == Outcome::stopped;
  const bool repeats = state_.trials[end.id].state != TrialState::stopping && state_.grant_repeat(end);
  if (!interrupted && !repeats) return end_trial(end);
  if (repeats) runner_.run_elsewhere(end.id);
  state_.trials.run_again(end.id);  // under the same id; its strategy does not learn of it
  if (repeats) {
    observer_.on_log(Observer::Severity::warning, fmt::format("trial {}: {}; run again", end.id, end.reason));
  }
}

void Coordinator::end_trial(TrialEnd end) {
  const uint64_t id = end.id;
  if (std::string why = state_.why_diverged(end); !why.empty()) {
    end.outcome = Outcome::diverged;
    end.reason = std::move(why);
  }
  state_.trials.end(std::move(end), loop_.now());
  const Trial& trial = state_.trials[id];
  act_on(state_.learn_from(trial));
  state_.best.add(trial);
  observer_.on_trial_ended(trial.record);
}

// Ends the duplicates of a delivered trial as that trial ended, with events of their own.
void Coordinator::answer_duplicates(uint64_t original) {
  for (const uint64_t id : state_.trials.answer_duplicates(original, loop_.utc_now(), loop_.now())) {
    observer_.on_trial_ended(state_.trials[id].record);
  }
}

// Ends the waiting trials that are to be stopped. Running trials are stopped after the commit. A strategy that has
// finished needs none of the open trials.
void Coordinator::stop_waiting() {
  if (state_.run.finish) state_.trials.request_stop_of_open();
  for (const uint64_t id : state_.trials.take_stops_of_waiting()) {
    TrialEnd end;
    end.id = id;
    end.outcome = Outcome::stopped;
    end.reason = state_.trials[id].record.started() ? "stopped" : "stopped before it ran";
    end.ended_at = loop_.utc_now();
    runner_.will_not_run(end);
    end_trial(std::move(end));
  }
}

// Trials that were asked for before their culprit was known, and have not run.
void Coordinator::refuse_waiting() {
  const std::set<uint64_t> waiting = state_.trials.waiting();
  for (const uint64_t id : waiting) {
    const Trial& trial = state_.trials[id];
    if (trial.record.started() || !may_be_refused(trial.phase)) continue;
    TrialEnd end;
    end.id = id;
    end.outcome = Outcome::invalid_config;
    end.reason = state_.watches.culprits.why_refused(trial.record.config, state_.plan.space);
    if (end.reason.empty()) continue;
    end.ended_at = loop_.utc_now();
    end_trial(std::move(end));
  }
}

void Coordinator::check_stop_requests() {
  const int level = stop_level_.load();
  if (level <= stop_level_acted_) return;
  stop_level_acted_ = level;
  end_study(StudyStatus::interrupted, "interrupted", true);
  state_.trials.request_stop_of_running();  // again, if they are being stopped gently
  loop_.wake();
}

// Ends the search as if the searcher had finished. The searcher gets no later event, so that it can go on from here
// when the study is resumed with a raised limit.
void Coordinator::end_search(std::string reason, bool of_time) {
  if (state_.run.phase != Phase::searcher || state_.run.finish || state_.ending) return;
  state_.searches.end({journal_.next_event(), std::move(reason), of_time});
  journal_.put_meta("searches", state_.searches.to_json());
  state_.run.finish = finish_by_host(*state_.searches.current().end);
  state_.run.strategy.reset();
  stop_waiting();
}

// The first reason holds. Running trials are stopped; run() returns when the last process is gone.
void Coordinator::end_study(StudyStatus status, std::string reason, bool resumable) {
  if (state_.ending) return;
  state_.ending = Ending{status, std::move(reason), resumable};
  state_.trials.request_stop_of_running();
  loop_.wake();
}

// Running trials are stopped, and run again when the study is resumed: they are not at fault.
void Coordinator::fail(const std::exception& error) {
  end_study(StudyStatus::failed, status_of(error).message(), true);
}

void Coordinator::refresh_best() {
  state_.best.set_usable_memory(state_.memory_for_best());
  state_.best.set_has_train_batch(state_.has_train_batch);
  if (!state_.best.refresh(state_.trials.all())) return;
  const std::optional<BestRecord>& best = state_.best.get();
  journal_.put_meta("best", best ? to_json(*best) : Json());
  if (best) observer_.on_best(*best);
}

void Coordinator::write_results(const std::string& reason, bool now) {
  results_.write({state_.plan, state_.trials.all(), state_.profile, state_.best.get(), state_.device_memory.all(),
                  reason, &state_.baseline},
                 now);
  const auto due = results_.due();
  if (!due || state_.ending || runner_.commit_delay().count() > 0) return;
  loop_.cancel(summary_timer_);
  summary_timer_ = loop_.at(*due, [] {});  // a turn, and with it the summary
}

StudyResult Coordinator::close() {
  journal_.begin();
  refresh_best();
  explain_missing_best(state_);
  if (turns_.has_lost_group()) {
    state_.trials.take_changed();  // the events that led to these changes are lost
  } else {
    if (state_.ending->resumable) saved_states_.save(state_.run);
    state_.put_changes(journal_);
  }
  StudyResult result = result_of(state_);
  write_ending(result, journal_);
  try {
    state_.run.strategy.reset();
    plugin_log_.forward(observer_);
    // The files come before the journal's last row: nobody writes missing files of a study that has ended.
    write_results(result.reason, true);
    fault_point("close.before_commit");
    journal_.commit();
    fault_point("close.committed");
    observer_.on_closing();
    merge_log(journal_, observer_);
  } catch (const std::exception& error) {
    if (result.status != StudyStatus::failed) {
      result.status = StudyStatus::failed;
      result.reason = status_of(error).message();
    }
  }
  if (result.status == StudyStatus::no_best) {
    for (const std::string& line : last_lines_of_failure(state_.trials.all(), state_.plan.dir)) {
      observer_.on_log(Observer::Severity::error, line);
    }
  }
  return result;
}

}  // namespace dsat::host
