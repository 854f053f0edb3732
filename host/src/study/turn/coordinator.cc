// The turn of a study: deliver what is ready, choose what to start, commit, act. The parts that it brings together say
// themselves what they decide; this file has the order.
#include "study/turn/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/fault_point.h"
#include "base/guarded.h"
#include "dsat/base/shell.h"
#include "dsat/base/units.h"
#include "study/results/no_best.h"
#include "study/state/admission.h"
#include "study/turn/describe_study.h"
#include "study/turn/new_trials.h"
#include "study/turn/strategy_events.h"
#include "study/watch/least_micro_batch.h"
#include "study/watch/trials_since_best.h"

namespace dsat::host {
namespace {

// What this thread has worked so far.
std::chrono::nanoseconds thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Coordinator::Coordinator(Plan plan, Journal& journal, Runner& runner, Loop& loop, Results& results, Observer& observer,
                         const std::atomic<int>& stop_level)
    : plan_(std::move(plan)),
      journal_(journal),
      runner_(runner),
      loop_(loop),
      results_(results),
      observer_(observer),
      stop_level_(stop_level),
      plugin_log_(loop),
      best_(plan_.metric, plan_.maximise),
      failures_(own_micro_batch(plan_)),
      states_(journal, observer),
      device_memory_(plan_),
      doubt_(plan_),
      own_(own_configuration(plan_)),
      time_(plan_.time_budget) {
  runner_.on_started = [this](const TrialStart& start) { on_started(start); };
  runner_.on_ended = [this](const TrialEnd& end) { on_ended(end); };
  journal_.on_busy = [this](std::chrono::milliseconds waited) { return keeps_waiting(waited); };
  runner_.on_notice = [this](const std::string& notice) { log(Observer::Severity::warning, notice); };
  runner_.on_closing = [this](const std::string& reason) { end_study(StudyStatus::interrupted, reason, true); };
  loop_.on_wake([this] {
    plugin_log_.forward(observer_);
    check_stop_requests();
  });
}

StudyResult Coordinator::run() {
  time_.begin(loop_.now());
  if (time_.end()) loop_.at(*time_.end(), [this] { end_study(StudyStatus::completed, kTimeIsSpent, true); });
  check_stop_requests();
  watch_journal();
  while (true) {
    turn();
    if (ending_ && trials_.running().empty()) break;
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
    commit_turn();
  } catch (const std::exception& error) {
    // None of this turn has happened; what ran before it is stopped all the same.
    for (const uint64_t id : starts) trials_.take_back_start(id);
    starts.clear();
    run_.strategy.reset();
    ending_.reset();  // what the study was to end with has not happened either
    fail(error);
  }
  fault_point("turn.before_act");
  act(starts);
  fault_point("turn.after_act");
  try {
    write_results("", false);
  } catch (const std::exception& error) {
    fail(error);
  }
}

// Hands over all events that are ready. One that its strategy fails leaves nothing behind.
void Coordinator::deliver_events() {
  if (ending_) return;
  try {
    watch_time();
    if (!run_.started && !trials_.running().empty()) return;  // an earlier search's, which are being stopped
    do {
      if (!run_.started) start_strategy();
      while (!ending_ && deliver_next()) {
      }
    } while (!ending_ && advance_phase());
  } catch (const std::exception& error) {
    run_.strategy.reset();  // nothing may follow but its end
    fail(error);
  }
}

void Coordinator::start_strategy() {
  // What an earlier search left has ended by now, and is an observation to this one.
  for (const Trial& trial : trials_.all()) {
    if (trial.state == TrialState::ended) trials_.deliver(trial.id());
  }
  run_.strategy = open_strategy(plan_, run_.phase, plugin_log_);
  if (run_.phase == Phase::searcher) derive_space_of_search();
  journal_.put_meta("own", own_.identity);
  run_.started = true;
  StrategyEvent start;
  start.study = run_.brief;
  if (!is_of_plugin(run_.phase)) return handle(start);
  // A profiler asks its own trial for the device's memory first; what the vendor's tool says comes with the result.
  start.study =
      describe_study(plan_, run_.phase, trial_limit(run_.phase, phase_view()), trials_.all(), profile_,
                     run_.phase == Phase::searcher ? device_memory_.usable() : device_memory_.given_or_reported());
  handle(start);
}

// As the plan has it, but without the micro batches that the profile has shown to be too small.
void Coordinator::derive_space_of_search() {
  if (const auto least = least_micro_batch(trials_.all())) {
    plan_.min_micro_batch = std::max(plan_.min_micro_batch, least->works);
  }
  derive_space(plan_, plan_.data_parallel_size);
}

// Delivers one more trial, if there is one whose turn it is.
bool Coordinator::deliver_next() {
  const TrialTable::Next next = trials_.next_to_deliver(loop_.now());
  if (next.id) deliver(*next.id);
  if (next.not_before) {
    loop_.cancel(reorder_timer_);
    reorder_timer_ = loop_.at(*next.not_before, [] {});
  }
  return next.id.has_value();
}

void Coordinator::deliver(uint64_t id) {
  const bool completed = trials_[id].record.outcome == Outcome::completed;
  if (completed && !run_.finish && run_.result_delivered != id) {
    handle(result_event(trials_[id], run_.phase == Phase::profiler ? device_memory_.all() : std::nullopt));
  }
  handle(exit_event(trials_[id]));
  trials_.deliver(id);
  answer_duplicates(id);
  failures_.add(trials_[id]);
  if (const auto ceiling = failures_.ceiling(trials_[id])) log(Observer::Severity::warning, *ceiling);
  if (const auto warning = batches_.add(trials_[id])) log(Observer::Severity::warning, *warning);
  if (const auto warning = script_.compare_times(trials_[id], plan_.metric)) log(Observer::Severity::warning, *warning);
  if (const auto reason = failures_.reason_to_end(trials_[id])) end_study(StudyStatus::no_best, *reason);
  if (const auto reason = steps_.why()) end_study(StudyStatus::no_best, *reason);
  if (completed && !best_.get()) {
    if (const auto reason = why_metric_is_missing(trials_.all(), plan_.metric)) {
      end_study(StudyStatus::no_best, *reason);
    }
  }
  watch_budget();
  if (!plan_.early_stopping || run_.phase != Phase::searcher) return;
  const uint64_t first = searches_.current().counts_from;
  if (trials_since_best(trials_.all(), plan_.metric, plan_.maximise, first) < *plan_.early_stopping) return;
  end_search(fmt::format("early stopping: {} trials without a better one", *plan_.early_stopping), false);
}

// A strategy is done when it has finished, or asks for nothing more, and all its trials are delivered. True: the next
// one begins.
bool Coordinator::advance_phase() {
  if (trials_.any_open()) return false;
  const PhaseView view = phase_view();
  doubt_restore(view);
  if (run_.phase == Phase::profiler) {
    if (!profile_.is_object()) {
      end_study(StudyStatus::no_best, fmt::format("no_profile: the profiler ended without a profile ({})",
                                                  run_.finish ? run_.finish->reason : "it asked for nothing more"));
      return false;
    }
    if (const auto least = least_micro_batch(trials_.all())) {
      log(Observer::Severity::warning,
          fmt::format("micro batch {} fails ({}): the search begins at {}; --min-micro-batch sets it", least->fails,
                      least->reason, least->works));
    }
    if (const std::string why_not = why_no_baseline(view); !why_not.empty()) {
      log(Observer::Severity::info, "your own configuration is not measured: " + why_not);
    }
  }
  if (begin_phase(next_phase(run_.phase, view))) return true;
  end_study(StudyStatus::completed, why_search_ended(run_.finish));
  return false;
}

// A restore that restores nothing looks like a search that is done.
void Coordinator::doubt_restore(const PhaseView& view) {
  const int left = trial_limit(Phase::searcher, view) - trials_.counted();
  if (run_.phase != Phase::searcher || run_.finish || !run_.idle_since_restored || left < 1) return;
  const PluginInfo& plugin = plan_.searcher.plugin;
  log(Observer::Severity::warning,
      fmt::format("plugin {}: after its saved state was restored it asks for nothing, and {} trials are left: "
                  "`dsat-host validate {}` checks save and restore; `dsat-host resume {} --searcher guided` goes on",
                  plugin.name, left, shell_quote(plugin.file.string()), shell_quote(plan_.dir.string())));
}

PhaseView Coordinator::phase_view() const {
  return {plan_,    trials_, own_, run_.finish, plan_.memory_margin > 0 ? device_memory_.usable() : std::nullopt,
          searches_};
}

bool Coordinator::begin_phase(std::optional<NextPhase> next) {
  if (!next) return false;
  run_ = StrategyRun();
  run_.phase = next->phase;
  run_.brief = std::move(next->brief);
  states_.begin_phase();
  return true;
}

// One event, from the strategy's answer to what follows from it.
void Coordinator::handle(const StrategyEvent& event) {
  NewTrials new_trials(plan_, trials_, run_.phase, trial_limit(run_.phase, phase_view()), own_.identity, loop_);
  const bool is_delivered = run_.phase != Phase::searcher || !searches_.was_ended_by_host();
  const std::vector<Op> ops = is_delivered ? run_.strategy->handle(event, new_trials) : std::vector<Op>();
  states_.note_event(journal_.append_event(run_.phase, event, ops));
  apply(new_trials.take(), ops);
}

void Coordinator::apply(std::vector<Trial> new_trials, const std::vector<Op>& ops) {
  if (!new_trials.empty()) run_.idle_since_restored = false;
  for (Trial& trial : new_trials) {
    const Trial& added = trials_.add(std::move(trial), loop_.now());
    if (added.record.outcome) {
      observer_.on_trial_ended(added.record);
    } else if (!added.record.duplicate_of) {
      observer_.on_trial_submitted(added.record);
    } else if (trials_[*added.record.duplicate_of].state == TrialState::delivered) {
      answer_duplicates(*added.record.duplicate_of);
    }
  }
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::stop_trial) {
      trials_.request_stop(*op.trial);
    } else if (op.kind == Op::Kind::set_profile) {
      profile_ = with_engine_version(op.profile, trials_.all());
      journal_.put_meta("profile", profile_);
      observer_.on_profile(profile_);
    } else if (op.kind == Op::Kind::finish) {
      run_.finish = op;
      best_.set_named(run_.phase >= Phase::searcher ? op.trial : std::nullopt, run_.phase > Phase::searcher);
    }
  }
  stop_waiting();
  if (trials_.fruitless() >= kFruitlessRequests) {
    end_study(StudyStatus::completed,
              fmt::format("space_exhausted: {} requests in a row were duplicates or invalid", kFruitlessRequests));
  }
}

// Takes trials from the queue while there is room, and marks them as running before they are: a crash between the
// journal's commit and the start costs a start, never a result.
std::vector<uint64_t> Coordinator::choose_starts() {
  std::vector<uint64_t> starts;
  std::vector<const Json*> configs;  // in order: a large trial is not passed by smaller ones for ever
  const auto limit = static_cast<size_t>(plan_.concurrency());
  while (!ending_ && !trials_.waiting().empty() && trials_.running().size() < limit) {
    const uint64_t id = *trials_.waiting().begin();
    configs.push_back(&trials_[id].record.config);
    if (!runner_.has_room_for(configs)) {
      if (trials_.running().empty() && runner_.has_abandoned()) end_without_slots(id);
      break;
    }
    trials_.start(id);
    starts.push_back(id);
  }
  return starts;
}

// Turns whose trials only exist in the study itself (a simulation) are written in groups: a crash loses the last group.
// How long a group is goes by the work in it: on a busy machine writing must not outgrow everything else.
void Coordinator::commit_turn() {
  const std::chrono::milliseconds delay = runner_.commit_delay();
  const std::chrono::nanoseconds now = thread_time();
  if (delay.count() > 0 && now - group_began_ < delay && !ending_) return;
  group_began_ = now;
  if (states_.due()) states_.save(run_);
  put_changes();
  group_lost_ = delay.count() > 0;
  journal_.commit();
  group_lost_ = false;
}

void Coordinator::put_changes() {
  for (const uint64_t id : trials_.take_changed()) journal_.put_trial(trials_[id]);
  if (const auto reruns = failures_.take_changed_reruns()) journal_.put_meta("infrastructure_reruns", *reruns);
  if (const auto restarts = failures_.take_changed_restarts()) journal_.put_meta("restarts", *restarts);
  if (std::exchange(spent_changed_, false)) journal_.put_meta(kSpentDeviceHours, spent_device_hours_);
}

// After a repair: its record was lost, and its folder still has all of it.
bool Coordinator::is_found_in_folder(const TrialSpec& spec) {
  if (!trusts_folders_) return false;
  const auto end = runner_.recover(spec);
  if (!end || end->started_at.empty()) return false;
  on_started({spec.id, spec.attempt, {}, end->started_at});
  loop_.at(loop_.now(), [this, end = *end] { on_ended(end); });
  return true;
}

void Coordinator::act(const std::vector<uint64_t>& starts) {
  for (const uint64_t id : starts) {
    if (ending_) {
      trials_.take_back_start(id);  // an earlier one could not be started
      continue;
    }
    try {
      const TrialSpec spec = spec_of(plan_, trials_[id]);
      if (!is_found_in_folder(spec)) runner_.start(spec);
    } catch (const std::exception& error) {
      trials_.take_back_start(id);
      fail(error);
    }
  }
  for (const uint64_t id : trials_.take_stops_of_running()) runner_.stop(id, stop_level_acted_ > 1);
}

// Another program writes to the journal. Trials go on meanwhile; who interrupts the study does not wait for long.
bool Coordinator::keeps_waiting(std::chrono::milliseconds waited) {
  const bool is_first = waited >= kSayThatItWaits && !has_reported_waiting_;
  if (is_first) {
    log(Observer::Severity::warning,
        fmt::format("{}: another program holds a lock on it, so the study waits for {} at most",
                    journal_.file().string(), format_duration(kLongestWaitForLock)));
  }
  has_reported_waiting_ = waited >= kSayThatItWaits;
  const int level = stop_level_.load();
  return waited < (level > 1 ? std::chrono::milliseconds(0) : level > 0 ? Journal::kUsualWait : kLongestWaitForLock);
}

}  // namespace dsat::host
