// The turn of a study: deliver what is ready, choose what to start, commit, act.
#include "study/coordinator.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/guarded.h"
#include "study/admission.h"
#include "study/best.h"
#include "study/trials_since_best.h"

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
      stop_level_(stop_level) {
  device_memory_bytes_ = plan_.device_memory_bytes;
  baseline_identity_ = admit(plan_, Json::object()).identity;
  runner_.on_started = [this](const TrialStart& start) { on_started(start); };
  runner_.on_ended = [this](const TrialEnd& end) { on_ended(end); };
  loop_.on_wake([this] {
    forward_plugin_logs();
    check_stop_requests();
  });
}

StudyResult Coordinator::run() {
  if (plan_.time_budget) {
    deadline_ = loop_.now() + *plan_.time_budget;
    loop_.at(*deadline_, [this] { end_study(StudyStatus::completed, "the time budget is spent", true); });
  }
  check_stop_requests();
  while (true) {
    turn();
    if (ending_ && running_.empty()) break;
    loop_.run_once();
  }
  return close();
}

void Coordinator::turn() {
  journal_.begin();
  if (!ending_ && !strategy_) {
    const Status opened = open_strategy(phase_);
    if (!opened.ok()) fail(opened);
  }
  if (!ending_ && !strategy_started_) {
    strategy_started_ = true;
    StrategyEvent start;
    start.study = study_json();
    handle(start);
  }
  while (!ending_ && deliver_next()) {
  }
  if (!ending_) advance_phase();
  const std::vector<uint64_t> starts = choose_starts();
  refresh_best();
  const Status committed = commit_turn();
  if (!committed.ok()) {
    // None of this turn has happened; what ran before it is stopped all the same.
    for (const uint64_t id : starts) running_.erase(id);
    strategy_.reset();
    ending_.reset();  // what the study was to end with has not happened either
    fail(committed);
    act({});
  } else {
    act(starts);
  }
  const Status written = results_.write({plan_, trials_, profile_, best_, device_memory(), ""}, false);
  if (!written.ok()) fail(written);
}

// Turns whose trials only exist in the study itself (a simulation) are written in groups: a crash loses the last group.
// How long a group is goes by the work in it: on a busy machine writing must not outgrow everything else.
Status Coordinator::commit_turn() {
  const std::chrono::milliseconds delay = runner_.commit_delay();
  const std::chrono::nanoseconds now = thread_time();
  if (delay.count() > 0 && now - group_began_ < delay && !ending_) return {};
  group_began_ = now;
  if (last_seq_ - last_state_seq_ >= kEventsPerState) save_state();
  for (const uint64_t id : dirty_) journal_.put_trial(trials_[id]);
  dirty_.clear();
  if (std::exchange(reruns_changed_, false)) journal_.put_meta("infrastructure_reruns", infrastructure_reruns_);
  Status committed = journal_.commit();
  group_lost_ = !committed.ok() && delay.count() > 0;
  return committed;
}

// Tells the strategy of one more trial, if one may be told now.
bool Coordinator::deliver_next() {
  const std::optional<uint64_t> id = ready_trial();
  if (!id) return false;
  immediate_.erase(*id);
  ended_.erase(*id);
  ended_when_.erase(*id);
  tell(trials_[*id]);
  return true;
}

void Coordinator::tell(Trial& trial) {
  const uint64_t id = trial.id();
  if (!strategy_finished_ && trial.record.outcome == Outcome::completed && result_told_ != id) {
    StrategyEvent result;
    result.kind = StrategyEvent::Kind::result;
    result.trial = id;
    result.step = trial.end ? trial.end->step : 0;
    result.metrics = trial.record.metrics.is_object() ? trial.record.metrics : Json::object();
    // What the trial knows of its device outweighs the vendor's tool, whose word is for want of a better one.
    if (phase_ == Phase::profiler && device_memory() && !result.metrics.contains("device_memory")) {
      result.metrics["device_memory"] = *device_memory();
    }
    if (!handle(result)) return;
  }
  if (!handle(exit_event(trials_[id]))) return;
  // handle may have added trials: `trial` is looked up again.
  Trial& told = trials_[id];
  told.state = TrialState::delivered;
  --open_trials_;
  dirty_.insert(id);
  release_duplicates(told);
  count_failure(told);
  watch_failures(told);
  watch_improvement();
}

void Coordinator::watch_improvement() {
  if (!plan_.early_stopping || phase_ != Phase::searcher) return;
  if (trials_since_best(trials_, plan_.metric, plan_.maximise) < *plan_.early_stopping) return;
  end_study(StudyStatus::completed,
            "early stopping: " + std::to_string(*plan_.early_stopping) + " trials without a better one", true);
}

StrategyEvent Coordinator::exit_event(const Trial& trial) const {
  StrategyEvent event;
  event.kind = StrategyEvent::Kind::exited;
  event.trial = trial.id();
  event.outcome = static_cast<int>(*trial.record.outcome);
  event.peak_bytes = trial.record.peak_bytes.value_or(0);
  event.reason = trial.record.reason;
  event.attempt = std::max(trial.record.attempt, 1u);
  if (trial.end) {
    event.exit_code = trial.end->exit_code;
    event.term_signal = trial.end->term_signal;
  }
  return event;
}

// A strategy is done when it has finished, or has nothing open left, and every trial of its has been told.
void Coordinator::advance_phase() {
  if (open_trials_ > 0) return;
  if (phase_ == Phase::profiler) {
    if (!profile_.is_object()) {
      const std::string why = strategy_finished_ ? finish_reason_ : "it asked for nothing more";
      return end_study(StudyStatus::no_best, "no_profile: the profiler ended without a profile (" + why + ")");
    }
    strategy_.reset();
    passing_state_seq_.reset();  // the profiler's
    phase_ = Phase::searcher;
    strategy_started_ = strategy_finished_ = false;
    const Status opened = open_strategy(phase_);
    if (!opened.ok()) return fail(opened);
    strategy_started_ = true;
    StrategyEvent start;
    try {
      derive_space(plan_, plan_.data_parallel_size);
      start.study = study_json();
    } catch (const std::exception& e) {
      return fail(Status::internal(e.what()));
    }
    handle(start);
    while (!ending_ && deliver_next()) {
    }
    if (!ending_) advance_phase();
    return;
  }
  end_study(StudyStatus::completed,
            strategy_finished_ ? finish_reason_ : "searcher_idle: the searcher has nothing left to try");
}

// Takes trials from the queue while there is room, and marks them running before they are: a crash between the
// journal's commit and the start costs a start, never a result.
std::vector<uint64_t> Coordinator::choose_starts() {
  std::vector<uint64_t> starts;
  if (ending_) return starts;
  const auto limit = static_cast<size_t>(plan_.concurrency());
  std::vector<const Json*> configs;  // in order: a large trial is not passed by smaller ones for ever
  while (!waiting_.empty() && running_.size() < limit) {
    const uint64_t id = *waiting_.begin();
    Trial& trial = trials_[id];
    configs.push_back(&trial.record.config);
    if (!runner_.has_room_for(configs)) break;
    waiting_.erase(waiting_.begin());
    trial.state = TrialState::running;
    ++trial.record.attempt;
    running_.insert(id);
    dirty_.insert(id);
    starts.push_back(id);
  }
  return starts;
}

TrialSpec Coordinator::spec_of(const Trial& trial) const {
  return {trial.id(),       trial.record.attempt, config_to_run(plan_, trial.record.config),
          trial.model_info, trial.identity,       trial.earlier_runs};
}

void Coordinator::act(const std::vector<uint64_t>& starts) {
  for (const uint64_t id : starts) {
    if (ending_) {
      running_.erase(id);  // an earlier one could not be started
      continue;
    }
    const Trial& trial = trials_[id];
    try {
      runner_.start(spec_of(trial));
    } catch (const Error& error) {
      running_.erase(id);
      fail(status_of(error));
    }
  }
  for (const uint64_t id : to_stop_) {
    if (running_.count(id) == 0) continue;
    stopping_.insert(id);
    runner_.stop(id, stop_level_acted_ > 1);
  }
  to_stop_.clear();
}

void Coordinator::check_stop_requests() {
  const int level = stop_level_.load();
  if (level <= stop_level_acted_) return;
  stop_level_acted_ = level;
  end_study(StudyStatus::interrupted, "interrupted", true);
  to_stop_.insert(running_.begin(), running_.end());  // again, if they are being stopped gently
  loop_.wake();
}

// The first reason holds. What runs is stopped; run() returns when the last process is gone.
void Coordinator::end_study(StudyStatus status, std::string reason, bool resumable) {
  if (ending_) return;
  ending_ = Ending{status, std::move(reason), resumable};
  for (const uint64_t id : running_) to_stop_.insert(id);
  loop_.wake();
}

// "No configuration found" alone helps nobody: how the trials ended, and the last words of one that failed.
std::string Coordinator::why_no_best() const {
  std::map<Outcome, int> counts;
  std::string last_words;
  for (const Trial& trial : trials_) {
    if (!trial.record.outcome || trial.record.duplicate_of) continue;
    ++counts[*trial.record.outcome];
    if (*trial.record.outcome != Outcome::completed && !trial.record.reason.empty()) {
      last_words = "; trial " + std::to_string(trial.id()) + ": " + trial.record.reason;
    }
  }
  std::string text;
  for (const auto& [outcome, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + to_string(outcome);
  }
  return ending_->reason + "; no trial gave " + plan_.metric + " (" + (text.empty() ? "none ran" : text) + ")" +
         last_words;
}

// What the last trial that went wrong printed, and where all of it is.
void Coordinator::log_last_words() {
  const auto failing = std::find_if(trials_.rbegin(), trials_.rend(), [](const Trial& trial) {
    const bool failed = trial.record.outcome && *trial.record.outcome != Outcome::completed;
    return failed && trial.end && !trial.end->tail.empty();
  });
  if (failing == trials_.rend()) return;
  const std::string id = std::to_string(failing->id());
  log(Observer::Severity::error,
      "last lines of trial " + id + " (" + (plan_.dir / "trials" / id / "stderr.log").string() + "):");
  for (const std::string& line : failing->end->tail) log(Observer::Severity::error, "  " + line);
}

StudyResult Coordinator::close() {
  journal_.begin();
  refresh_best();
  if (ending_->status == StudyStatus::completed && !best_) {
    ending_->status = StudyStatus::no_best;
    ending_->reason = why_no_best();
  }
  if (group_lost_) dirty_.clear();
  if (ending_->resumable && !group_lost_) save_state();
  for (const uint64_t id : dirty_) journal_.put_trial(trials_[id]);
  dirty_.clear();
  journal_.put_meta("ended", {{"status", to_string(ending_->status)}, {"reason", ending_->reason}});
  Status closed = journal_.commit();
  strategy_.reset();
  forward_plugin_logs();
  if (closed.ok()) closed = results_.write({plan_, trials_, profile_, best_, device_memory(), ending_->reason}, true);
  // Somebody who reads the journal at this moment keeps it from being folded: it is whole all the same.
  const Status folded = closed.ok() ? journal_.checkpoint() : Status();
  if (!folded.ok()) log(Observer::Severity::warning, folded.message());
  if (!closed.ok() && ending_->status != StudyStatus::failed) {
    ending_->status = StudyStatus::failed;
    ending_->reason = closed.message();
  }
  if (ending_->status == StudyStatus::no_best) log_last_words();
  StudyResult result;
  result.status = ending_->status;
  result.reason = ending_->reason;
  result.best = best_;
  result.dir = plan_.dir;
  for (const Trial& trial : trials_) {
    if (trial.record.outcome && !trial.record.duplicate_of) ++result.counts[*trial.record.outcome];
  }
  return result;
}

// One more measured configuration leaves the means of the others as they are: it is the best, or nothing changes. A
// further measurement of one, or the searcher's own word, puts them all in question.
void Coordinator::compare_with_best(const Trial& trial) {
  const TrialRecord& record = trial.record;
  if (record.outcome != Outcome::completed || record.duplicate_of || !record.metrics.is_object()) return;
  const auto metric = record.metrics.find(plan_.metric);
  if (metric == record.metrics.end() || !metric->is_number()) return;
  best_stale_ = best_stale_ || trial.earlier_runs > 0 || believed_best_;
  const double value = metric->get<double>();
  const BestRecord* rival = best_ ? &*best_ : nullptr;
  if (rival == nullptr || (plan_.maximise ? value > rival->metric : value < rival->metric)) {
    const std::optional<BestRecord> before = better_;
    const bool beats = !before || (plan_.maximise ? value > before->metric : value < before->metric);
    if (beats) better_ = BestRecord{trial.id(), best_config(record.config), record.metrics, value, ""};
    best_stale_ = best_stale_ || (before && value == before->metric);
  } else if (value == rival->metric && trial.id() < rival->trial) {
    best_stale_ = true;
  }
}

void Coordinator::refresh_best() {
  std::optional<BestRecord> best = std::exchange(better_, std::nullopt);
  if (best_stale_) best = choose_best(trials_, plan_.metric, plan_.maximise, believed_best_);
  best_stale_ = false;
  if (!best) return;
  const bool changed =
      !best_ || best_->trial != best->trial || best_->metric != best->metric || best_->why != best->why;
  if (!changed) return;
  best_ = std::move(best);
  journal_.put_meta("best", {{"trial", best_->trial},
                             {"config", best_->config},
                             {"metrics", best_->metrics},
                             {"metric", best_->metric},
                             {"why", best_->why}});
  observer_.on_best(*best_);
}

}  // namespace dsat::host
