// Taking up a study: what the journal holds becomes the parts of a coordinator, and open trials go back to their
// queues.
#include <algorithm>
#include <utility>

#include "study/admission.h"
#include "study/coordinator.h"
#include "study/replay.h"
#include "study/rewind.h"

namespace dsat::host {

void Coordinator::resume() {
  std::vector<Trial> trials = journal_.trials();
  std::vector<JournalEvent> events = journal_.events();
  journal_.begin();
  try {
    take_up(std::move(trials), std::move(events));
  } catch (const std::exception&) {
    journal_.rollback();
    throw;
  }
  put_changes();
  journal_.commit();
}

void Coordinator::take_up(std::vector<Trial> trials, std::vector<JournalEvent> events) {
  const bool had_ended = journal_.meta("ended").value_or(Json()).is_object();
  profile_ = journal_.meta("profile").value_or(Json());
  failures_.restore_restarts(journal_.meta("restarts").value_or(Json::array()).get<std::map<uint64_t, int>>());
  failures_.restore_reruns(journal_.meta("infrastructure_reruns").value_or(Json::array()).get<std::set<uint64_t>>());
  const std::set<uint64_t> changed = rewind_if_limit_raised(plan_.max_trials, journal_, trials, events);
  trials_ = TrialTable(std::move(trials), loop_.now());
  for (const uint64_t id : changed) trials_.mark_changed(id);
  for (const Trial& trial : trials_.all()) learn_from(trial);
  if (!events.empty()) {
    const Phase phase = events.back().phase;
    if (phase >= Phase::searcher) derive_space(plan_, plan_.data_parallel_size);
    const auto first_id = std::count_if(trials_.all().begin(), trials_.all().end(),
                                        [phase](const Trial& trial) { return trial.phase < phase; });
    run_ = replay_strategy(plan_, events, static_cast<uint64_t>(first_id), trial_limit(phase, phase_view()), journal_,
                           plugin_log_, observer_);
    states_.resume_at(events.back().seq);
    if (run_.finish && phase >= Phase::searcher) best_.set_named(run_.finish->trial, phase > Phase::searcher);
  }
  requeue_running();
  // What the events tell beyond the trials' own records: who failed in a row, and who is to be stopped.
  for (const JournalEvent& entry : events) {
    if (entry.event.kind == StrategyEvent::Kind::exited) failures_.add(trials_[entry.event.trial]);
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::stop_trial) trials_.request_stop(*op.trial);
    }
  }
  stop_waiting();
  // A crash may have come between a trial's end and the end of the study that it means.
  if (!had_ended && !events.empty() && events.back().event.kind == StrategyEvent::Kind::exited) {
    const auto reason = failures_.reason_to_end(trials_[events.back().event.trial]);
    if (reason) end_study(StudyStatus::no_best, *reason);
  }
  for (const Phase phase : {Phase::profiler, Phase::searcher}) {
    StrategyPlan& strategy = phase == Phase::profiler ? plan_.profiler : plan_.searcher;
    if (strategy.plugin.state_version == strategy.journalled_state_version) continue;
    journal_.remove_states(phase);
    strategy.journalled_state_version = strategy.plugin.state_version;
  }
  journal_.put_meta("plan", to_json(plan_));
  journal_.put_meta("settings", settings_of(plan_));
  journal_.put_meta("ended", nullptr);
  best_.forget();
}

// A trial that ran when the host died may have ended well all the same: then its result file is there, complete. Any
// other runs again.
void Coordinator::requeue_running() {
  const std::set<uint64_t> were_running = trials_.running();
  std::vector<TrialEnd> ends;
  for (const uint64_t id : were_running) {
    std::optional<TrialEnd> end = runner_.recover(spec_of(plan_, trials_[id]));
    if (end) {
      ends.push_back(std::move(*end));
    } else if (!runner_.adopt(spec_of(plan_, trials_[id]))) {
      trials_.run_again(id);
    }
  }
  for (TrialEnd& end : ends) end_trial(std::move(end));
}

}  // namespace dsat::host
