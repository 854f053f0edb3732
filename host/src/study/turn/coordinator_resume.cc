// Taking up a study: what the journal holds becomes the parts of a coordinator, and open trials go back to their
// queues. Another searcher that takes the study over gets them as observations instead.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/clock.h"
#include "dsat/config/json_numbers.h"
#include "plan/device_hours.h"
#include "record/check_rows.h"
#include "study/state/admission.h"
#include "study/take_up/replay.h"
#include "study/take_up/rewind.h"
#include "study/turn/coordinator.h"

namespace dsat::host {
namespace {

// What the host measured again after this search.
std::vector<uint64_t> repeats_at_end(const std::vector<Trial>& trials, uint64_t first) {
  std::vector<uint64_t> ids;
  for (const Trial& trial : trials) {
    if (trial.id() >= first && trial.phase > Phase::searcher) ids.push_back(trial.id());
  }
  return ids;
}

std::string taken_back(const std::vector<uint64_t>& ids) {
  if (ids.size() == 1) return fmt::format("trial {}, a repeat at the end, is taken back; its id is used again", ids[0]);
  return fmt::format("trials {} {} {}, repeats at the end, are taken back; their ids are used again", ids.front(),
                     ids.size() == 2 ? "and" : "to", ids.back());
}

// Id and version of the searcher that the journal's plan names, which is the one until now; empty: it is damaged.
std::string searcher_of_plan(Journal& journal) {
  try {
    const Json searcher = journal.meta("plan").value_or(Json::object()).at("searcher");
    return searcher.at("id").get<std::string>() + " " + searcher.at("version").get<std::string>();
  } catch (const Json::exception&) {
    return "";
  }
}

// Those of this search that no event asks for: what the searcher names is chosen without them.
void mark_unasked(std::vector<Trial>& trials, const std::vector<JournalEvent>& events, uint64_t first_trial) {
  std::set<uint64_t> asked;
  for (const JournalEvent& entry : events) {
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::create_trial && op.trial) asked.insert(*op.trial);
    }
  }
  for (Trial& trial : trials) {
    const bool is_searchers = trial.phase == Phase::searcher && trial.id() >= first_trial;
    trial.is_asked_for = !is_searchers || asked.count(trial.id()) != 0;
  }
}

// The latest of all trials. nullopt: nothing has happened yet.
std::optional<std::chrono::system_clock::time_point> latest_moment(const std::vector<Trial>& trials) {
  std::optional<std::chrono::system_clock::time_point> latest;
  for (const Trial& trial : trials) latest = std::max(latest, latest_moment(trial.record));
  return latest;
}

// When a run ended that a crash cut off: not before it last wrote something, and not beyond what a trial may take,
// since a copy of the folder may have written its files again. Empty: unknown.
std::string end_of_cut_off(const TrialRecord& record, const std::string& written_at, std::chrono::milliseconds limit) {
  const auto start = parse_rfc3339(record.started_at), written = parse_rfc3339(written_at);
  return start && written ? format_rfc3339(std::min(*written, *start + limit)) : "";
}

}  // namespace

void Coordinator::resume(const TakeUp& how) {
  time_.use(how.time_used);
  std::vector<Trial> trials = journal_.trials();
  std::vector<JournalEvent> events = journal_.events();
  const uint64_t first_trial = Searches(journal_.meta("searches")).current().first_trial;
  if (const auto damage = find_damage(trials, events, first_trial)) {
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: {}; {}", journal_.file().string(), to_string(*damage), kRepairRemedy));
  }
  journal_.begin();
  try {
    take_up(std::move(trials), std::move(events), how);
  } catch (const std::exception&) {
    journal_.rollback();
    throw;
  }
  put_changes();
  journal_.commit();
  // The events took as much room as all trials do, and the C library would keep it for the length of the study.
  malloc_trim(0);
}

// A row of meta as it was written; one that is not there is empty.
template <class T>
T Coordinator::meta_as(const char* key) {
  try {
    return journal_.meta(key).value_or(Json::array()).get<T>();
  } catch (const Json::exception&) {
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: its {} is damaged; {}", journal_.file().string(), key, kRepairRemedy));
  }
}

void Coordinator::take_up(std::vector<Trial> trials, std::vector<JournalEvent> events, const TakeUp& how) {
  const bool had_ended = journal_.meta("ended").value_or(Json()).is_object();
  profile_ = journal_.meta("profile").value_or(Json());
  failures_.restore_restarts(meta_as<std::map<uint64_t, int>>("restarts"));
  failures_.restore_reruns(meta_as<std::set<uint64_t>>("infrastructure_reruns"));
  spent_device_hours_ = spent_device_hours(journal_);
  searches_ = Searches(journal_.meta("searches"));
  trusts_folders_ = journal_.meta(kTrustsFolders).has_value();
  // A searcher that has not begun is replaced, and that is all.
  const bool hands_over = how.another_searcher && !events.empty() && events.back().phase >= Phase::searcher;
  std::set<uint64_t> changed;
  if (hands_over) {
    journal_.put_meta("max_trials", plan_.max_trials);
  } else {
    const std::vector<uint64_t> repeats = repeats_at_end(trials, searches_.current().first_trial);
    changed = rewind_if_limit_raised({plan_.max_trials, how.more_time}, searches_, journal_, trials, events);
    if (!repeats.empty() && trials.size() <= repeats.front()) log(Observer::Severity::info, taken_back(repeats));
  }
  if (!hands_over) mark_unasked(trials, events, searches_.current().first_trial);
  if (const auto last = latest_moment(trials)) loop_.go_on_from(*last);
  trials_ = TrialTable(std::move(trials), loop_.now());
  failures_.forget_from(trials_.size());
  for (const uint64_t id : changed) trials_.mark_changed(id);
  for (const Trial& trial : trials_.all()) learn_from(trial);
  if (!hands_over) bring_back_strategy(events);
  std::vector<TrialEnd> recovered = requeue_running();
  if (hands_over) hand_search_over(events.back().seq + 1);
  if (!run_.started) stop_open();
  learn_from_events(events);
  for (TrialEnd& end : recovered) end_recovered(std::move(end));
  stop_waiting();
  // A crash may have come between a trial's end and the end of the study that it means.
  const bool ends_with_exit = !events.empty() && events.back().event.kind == StrategyEvent::Kind::exited;
  if (!had_ended && !hands_over && ends_with_exit) {
    const Trial& last = trials_[events.back().event.trial];
    const std::string resumed_at = journal_.meta("settings").value_or(Json::object()).value("resumed_at", "");
    // What ended before the study was taken up again has had its say: the script may have been mended since.
    const auto reason = last.record.ended_at < resumed_at ? std::nullopt : failures_.reason_to_end(last);
    if (reason) end_study(StudyStatus::no_best, *reason);
  }
  keep_state_versions();
  journal_.put_meta("plan", to_json(plan_));
  Json settings = settings_of(plan_);
  if (const std::vector<std::string> names = searches_.names(); !names.empty()) settings["searchers"] = names;
  settings["resumed_at"] = loop_.utc_now();
  journal_.put_meta("settings", settings);
  journal_.put_meta("searches", searches_.to_json());
  for (const char* of_its_end : {"ended", "gain"}) journal_.put_meta(of_its_end, nullptr);
  best_.forget();
  watch_budget();  // the runs that an interruption ended may have spent it
}

// The strategy that was at work, with what it has had since its start.
void Coordinator::bring_back_strategy(const std::vector<JournalEvent>& events) {
  if (events.empty()) return;
  const Search& search = searches_.current();
  states_.resume_at(events.back().seq);
  if (events.back().seq < search.first_event) {  // the host died between the handing over and the start
    run_.phase = Phase::searcher;
    return;
  }
  const Phase phase = events.back().phase;
  if (phase >= Phase::searcher) derive_space_of_search();
  if (phase == Phase::searcher && search.end) {
    run_.phase = phase;
    run_.started = true;
    run_.finish = finish_by_host(*search.end);
  } else {
    std::vector<JournalEvent> own;
    std::copy_if(events.begin(), events.end(), std::back_inserter(own),
                 [&](const JournalEvent& entry) { return entry.phase == phase && entry.seq >= search.first_event; });
    const auto earlier = std::count_if(trials_.all().begin(), trials_.all().end(),
                                       [phase](const Trial& trial) { return trial.phase < phase; });
    const uint64_t first_id = std::max(static_cast<uint64_t>(earlier), search.first_trial);
    run_ = replay_strategy(plan_, own, first_id, trial_limit(phase, phase_view()), journal_, plugin_log_, observer_);
    if (phase == Phase::searcher && !run_.finish) note_earlier_limits(own.front().event.study);
  }
}

// A searcher keeps the limits of its start: with others the same events would get other answers.
void Coordinator::note_earlier_limits(const Json& start) {
  const Json* limits = config::find(start, "limits");
  const auto at_once = limits ? config::whole_number_at<int>(*limits, "max_concurrent_trials") : std::nullopt;
  if (!at_once || plan_.concurrency() <= *at_once) return;
  log(Observer::Severity::info,
      fmt::format("{} plans for {} trials at once, as at its start; `dsat-host resume --searcher {}` has it begin anew "
                  "with {} and all that was measured",
                  plan_.searcher.plugin.name, *at_once, plan_.searcher.plugin.name, plan_.concurrency()));
}

// What the events tell beyond the trials' own records: who failed in a row, who is to be stopped, and which trial was
// named as the best.
void Coordinator::learn_from_events(const std::vector<JournalEvent>& events) {
  const uint64_t first = searches_.current().first_event;
  for (const JournalEvent& entry : events) {
    if (entry.seq == first) failures_.begin_row();
    if (entry.event.kind == StrategyEvent::Kind::exited) failures_.add(trials_[entry.event.trial]);
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::stop_trial) trials_.request_stop(*op.trial);
      if (op.kind != Op::Kind::finish || entry.phase < Phase::searcher || entry.seq < first) continue;
      best_.set_named(op.trial, entry.phase > Phase::searcher);
    }
  }
  if (!events.empty() && events.back().seq < first) failures_.begin_row();
}

// Ends what the earlier searcher left open, so that the next one gets all of it as observations at its start. What it
// asks for again is answered by what ran.
void Coordinator::stop_open() {
  for (const Trial& trial : trials_.all()) {
    if (trial.state < TrialState::ended) trials_.request_stop(trial.id());
  }
  stop_waiting();
}

void Coordinator::hand_search_over(uint64_t first_event) {
  trials_.begin_row();
  states_.resume_at(first_event - 1);
  searches_.take_over(first_event, trials_.size(), plan_.searcher.plugin, searcher_of_plan(journal_));
  run_.phase = Phase::searcher;
  log(Observer::Severity::info, searches_.current().plugin + " takes the search over, with all trials that have ended");
}

// Saved states are of the plugin that wrote them.
void Coordinator::keep_state_versions() {
  for (const Phase phase : {Phase::profiler, Phase::searcher}) {
    StrategyPlan& strategy = phase == Phase::profiler ? plan_.profiler : plan_.searcher;
    if (strategy.plugin.state_version == strategy.journalled_state_version) continue;
    journal_.remove_states(phase);
    strategy.journalled_state_version = strategy.plugin.state_version;
  }
}

// A trial that ran when the host died may have ended all the same: then its folder has all of it. The others are
// taken up where they run, or run again.
std::vector<TrialEnd> Coordinator::requeue_running() {
  const std::set<uint64_t> were_running = trials_.running();
  std::vector<TrialEnd> ends;
  for (const uint64_t id : were_running) {
    std::optional<TrialEnd> end = runner_.recover(spec_of(plan_, trials_[id]));
    if (end) {
      ends.push_back(std::move(*end));
    } else if (!runner_.adopt(spec_of(plan_, trials_[id]))) {
      const std::string written_at = runner_.last_written_at(spec_of(plan_, trials_[id]));
      add_cost(id, end_of_cut_off(trials_[id].record, written_at, plan_.trial_timeout));
      trials_.run_again(id);
    }
  }
  return ends;
}

// As it would have ended had its host lived: one that failed by accident has its restart.
void Coordinator::end_recovered(TrialEnd end) {
  // The crash may have cost the journal its start; its folder has it.
  const TrialRecord& record = trials_[end.id].record;
  if (record.started_at.empty()) trials_.note_start({end.id, end.attempt, record.slots, end.started_at});
  add_cost(end.id, end.ended_at);
  const bool may_restart =
      end.outcome == Outcome::failed && !trials_.is_to_stop(end.id) && !is_spent(plan_.budget, spent_device_hours_);
  if (!may_restart || !failures_.grant_restart(end, plan_.max_restarts.value_or(0))) return end_trial(std::move(end));
  trials_.run_again(end.id);
  log(Observer::Severity::warning, fmt::format("trial {}: {}; run again", end.id, end.reason));
}

}  // namespace dsat::host
