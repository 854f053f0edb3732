// The rows of the journal become a state, from the trials to the strategy at work; open trials go back to their queues.
#include "study/resume/resumed_state.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "dsat/base/shell.h"
#include "dsat/config/json_numbers.h"
#include "plan/device_hours.h"
#include "record/check_rows.h"
#include "study/resume/replay.h"
#include "study/resume/rewind.h"
#include "study/state/phases.h"

namespace dsat::host {
namespace {

// The trials that the host measured again after this search.
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

// Id and version of the searcher in the journal's plan, which has worked until now; empty: the plan is damaged.
std::string searcher_of_plan(Journal& journal) {
  try {
    const Json searcher = journal.meta("plan").value_or(Json::object()).at("searcher");
    return searcher.at("id").get<std::string>() + " " + searcher.at("version").get<std::string>();
  } catch (const Json::exception&) {
    return "";
  }
}

// Marks the trials of this search that no event asks for: a searcher that names a best does not know them.
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

// The last moment when something happened to a trial; nullopt: nothing has happened yet.
std::optional<std::chrono::system_clock::time_point> latest_moment(const std::vector<Trial>& trials) {
  std::optional<std::chrono::system_clock::time_point> latest;
  for (const Trial& trial : trials) latest = std::max(latest, latest_moment(trial.record));
  return latest;
}

// A row of meta as it was written; a row that is not there is empty.
template <class T>
T meta_as(Journal& journal, const char* key) {
  try {
    return journal.meta(key).value_or(Json::array()).get<T>();
  } catch (const Json::exception&) {
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: its {} is damaged; {}", journal.file().string(), key, kRepairRemedy));
  }
}

// The costs, second runs and marks that the journal keeps beside trials and events.
void read_meta(StudyState& state, Journal& journal) {
  state.profile = journal.meta("profile").value_or(Json());
  state.watches.failures.restore_restarts(meta_as<std::map<uint64_t, int>>(journal, "restarts"));
  state.watches.failures.restore_reruns(meta_as<std::set<uint64_t>>(journal, "infrastructure_reruns"));
  state.spent_device_hours = spent_device_hours(journal);
  state.searches = Searches(journal.meta("searches"));
  state.has_train_batch = !journal.meta(kLeavesOutTrainBatch).has_value();
  state.reuses_results = journal.meta(kTrustsFolders).has_value();
}

void learn_from_trials(StudyState& state, Observer& observer) {
  for (const Trial& trial : state.trials.all()) {
    for (Finding& finding : state.learn_from(trial)) {
      if (finding.effect == Finding::Effect::warning) {
        observer.on_log(Observer::Severity::warning, finding.text);
      } else if (!state.ending) {
        state.ending = Ending{StudyStatus::no_best, std::move(finding.text)};
      }
    }
  }
}

// A searcher keeps the limits of its start: with others the same events would get other answers.
void report_earlier_limits(const Plan& plan, const Json& start, Observer& observer) {
  const Json* limits = config::find(start, "limits");
  const auto at_once = limits ? config::whole_number_at<int>(*limits, "max_concurrent_trials") : std::nullopt;
  if (!at_once || plan.concurrency() <= *at_once) return;
  observer.on_log(
      Observer::Severity::info,
      fmt::format(
          "{} plans for {} trials at once, as at its start; `dsat-host resume {} --searcher {}` starts it again "
          "with {} at once and all measurements",
          plan.searcher.plugin.name, *at_once, shell_quote(plan.dir.string()), plan.searcher.plugin.name,
          plan.concurrency()));
}

// Brings the strategy that was at work to where it was, by the events that it has had since its start.
void restore_strategy(StudyState& state, const std::vector<JournalEvent>& events, Journal& journal, PluginLog& log,
                      Observer& observer) {
  if (events.empty()) return;
  const Search& search = state.searches.current();
  if (events.back().seq < search.first_event) {  // the host died between the handing over and the start
    state.run.phase = Phase::searcher;
    return;
  }
  const Phase phase = events.back().phase;
  if (phase >= Phase::searcher) state.derive_search_space();
  if (phase == Phase::searcher && search.end) {
    state.run.phase = phase;
    state.run.started = true;
    state.run.finish = finish_by_host(*search.end);
    return;
  }
  std::vector<JournalEvent> received;
  std::copy_if(events.begin(), events.end(), std::back_inserter(received),
               [&](const JournalEvent& entry) { return entry.phase == phase && entry.seq >= search.first_event; });
  const auto earlier = std::count_if(state.trials.all().begin(), state.trials.all().end(),
                                     [phase](const Trial& trial) { return trial.phase < phase; });
  const uint64_t first_id = std::max(static_cast<uint64_t>(earlier), search.first_trial);
  state.run = replay_strategy(state.plan, received, first_id, trial_limit(phase, state), journal, log, observer);
  if (phase == Phase::searcher && !state.run.finish) {
    report_earlier_limits(state.plan, received.front().event.study, observer);
  }
}

// The events show what the trials' own records do not: which trials failed in a row, which are to be stopped, and which
// one was named as the best.
void learn_from_events(StudyState& state, const std::vector<JournalEvent>& events) {
  const uint64_t first = state.searches.current().first_event, mended_at = state.searches.current().mended_at;
  for (const JournalEvent& entry : events) {
    if (entry.seq == first) state.watches.begin_search();
    if (entry.seq == mended_at) state.watches.culprits.give_new_chance();
    const bool is_end = entry.event.kind == StrategyEvent::Kind::exited;
    if (is_end) state.watches.count(state.trials[entry.event.trial], state.plan);
    for (const Op& op : entry.ops) {
      if (op.kind == Op::Kind::stop_trial) state.trials.request_stop(*op.trial);
      if (op.kind != Op::Kind::finish || entry.phase < Phase::searcher || entry.seq < first) continue;
      state.best.set_named(op.trial, entry.phase > Phase::searcher);
    }
  }
  if (!events.empty() && events.back().seq < first) state.watches.begin_search();
  if (!events.empty() && events.back().seq < mended_at) state.watches.culprits.give_new_chance();
  state.watches.culprits.take_news();  // the user knows them
}

void hand_search_over(StudyState& state, uint64_t first_event, Journal& journal, Observer& observer) {
  state.trials.begin_row();
  state.searches.take_over(first_event, state.trials.size(), state.plan.searcher.plugin, searcher_of_plan(journal));
  state.run.phase = Phase::searcher;
  observer.on_log(Observer::Severity::info,
                  state.searches.current().plugin + " takes the search over, with all trials that have ended");
}

// A saved state can be restored only by a plugin of the same state version.
void keep_state_versions(Plan& plan, Journal& journal) {
  for (const Phase phase : {Phase::profiler, Phase::searcher}) {
    StrategyPlan& strategy = phase == Phase::profiler ? plan.profiler : plan.searcher;
    if (strategy.plugin.state_version == strategy.journalled_state_version) continue;
    journal.remove_states(phase);
    strategy.journalled_state_version = strategy.plugin.state_version;
  }
}

// A crash may have come between a trial's end and the end of the study that follows from it. A failure of an earlier
// session ends nothing: the script may have been mended since.
std::optional<std::string> missed_reason_to_end(const StudyState& state, const JournalEvent& last, Journal& journal) {
  if (last.event.kind != StrategyEvent::Kind::exited) return std::nullopt;
  const Trial& trial = state.trials[last.event.trial];
  const std::string resumed_at = journal.meta("settings").value_or(Json::object()).value("resumed_at", "");
  if (trial.record.ended_at < resumed_at) return std::nullopt;
  return state.watches.reason_to_end(trial, {state.plan, state.trials.all(), state.profile});
}

void write_meta(const StudyState& state, Journal& journal, const Loop& loop) {
  journal.put_meta("plan", to_json(state.plan));
  Json settings = settings_of(state.plan);
  if (const std::vector<std::string> names = state.searches.names(); !names.empty()) settings["searchers"] = names;
  settings["resumed_at"] = loop.utc_now();
  journal.put_meta("settings", settings);
  journal.put_meta("searches", state.searches.to_json());
  for (const char* of_its_end : {"ended", "gain"}) journal.put_meta(of_its_end, nullptr);
}

void read_state(StudyState& state, std::vector<Trial> trials, std::vector<JournalEvent> events, Journal& journal,
                const ResumeTerms& terms, PluginLog& log, Observer& observer, Loop& loop) {
  const bool had_ended = journal.meta("ended").value_or(Json()).is_object();
  read_meta(state, journal);
  // A searcher that has not begun has nothing to hand over.
  const bool hands_over = terms.another_searcher && !events.empty() && events.back().phase >= Phase::searcher;
  std::set<uint64_t> changed;
  if (hands_over) {
    journal.put_meta("max_trials", state.plan.max_trials);
  } else {
    const std::vector<uint64_t> repeats = repeats_at_end(trials, state.searches.current().first_trial);
    changed = rewind_if_limit_raised(state.plan.max_trials, terms.more_time, state.searches, journal, trials, events);
    if (!repeats.empty() && trials.size() <= repeats.front()) {
      observer.on_log(Observer::Severity::info, taken_back(repeats));
    }
    mark_unasked(trials, events, state.searches.current().first_trial);
  }
  if (const auto last = latest_moment(trials)) loop.go_on_from(*last);
  state.trials = TrialTable(std::move(trials), loop.now());
  state.watches.failures.forget_from(state.trials.size());
  for (const uint64_t id : changed) state.trials.mark_changed(id);
  learn_from_trials(state, observer);
  if (hands_over) {
    hand_search_over(state, events.back().seq + 1, journal, observer);
  } else {
    restore_strategy(state, events, journal, log, observer);
  }
  // Open trials of an earlier search are stopped. The next searcher gets them as observations, and their results if it
  // asks for the same configurations.
  if (!state.run.started) {
    for (const Trial& trial : state.trials.all()) {
      if (trial.state < TrialState::ended) state.trials.request_stop(trial.id());
    }
  }
  // Whoever takes up again what had come to its end may have mended something. After a crash nothing has changed.
  if (had_ended && !events.empty()) state.searches.give_new_chance(events.back().seq + 1);
  learn_from_events(state, events);
  if (!had_ended && !hands_over && !events.empty() && !state.ending) {
    if (auto reason = missed_reason_to_end(state, events.back(), journal)) {
      state.ending = Ending{StudyStatus::no_best, std::move(*reason)};
    }
  }
  keep_state_versions(state.plan, journal);
  write_meta(state, journal, loop);
  state.best.forget();
}

}  // namespace

StudyState resumed_state(Journal& journal, Plan plan, const ResumeTerms& terms, PluginLog& log, Observer& observer,
                         Loop& loop) {
  StudyState state(std::move(plan));
  state.time_used = terms.time_used;
  {
    std::vector<Trial> trials = journal.trials();
    std::vector<JournalEvent> events = journal.events();
    const uint64_t first_trial = Searches(journal.meta("searches")).current().first_trial;
    if (const auto damage = find_damage(trials, events, first_trial)) {
      throw Error(DSAT_INTERNAL,
                  fmt::format("journal {}: {}; {}", journal.file().string(), to_string(*damage), kRepairRemedy));
    }
    journal.begin();
    try {
      read_state(state, std::move(trials), std::move(events), journal, terms, log, observer, loop);
    } catch (const std::exception&) {
      journal.rollback();
      throw;
    }
  }
  state.put_changes(journal);
  journal.commit();
  // The events took as much memory as all trials do, and the C library would keep it until the study ends.
  malloc_trim(0);
  return state;
}

}  // namespace dsat::host
