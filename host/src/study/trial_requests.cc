// What strategies ask for: requests considered while an event runs, ops applied once it is accepted.
#include <algorithm>
#include <iterator>
#include <utility>

#include "dsat/study.h"
#include "study/admission.h"
#include "study/coordinator.h"

namespace dsat::host {

Strategy::Callbacks Coordinator::live_callbacks() {
  Strategy::Callbacks callbacks;
  callbacks.create_trial = [this](const Op& request) { return consider(request); };
  callbacks.knows_trial = [this](uint64_t id) { return id < trials_.size() + drafts_.size(); };
  callbacks.log = [this](int severity, std::string_view message) {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    plugin_logs_.emplace_back(severity, std::string(message));
    loop_.wake();
  };
  return callbacks;
}

Status Coordinator::open_strategy(Phase phase) {
  const StrategyPlan& chosen = phase == Phase::profiler ? plan_.profiler : plan_.searcher;
  Result<std::unique_ptr<Strategy>> strategy =
      Strategy::create(chosen.plugin, chosen.options, plan_.seed, live_callbacks());
  if (!strategy.ok()) return strategy.status();
  strategy_ = std::move(strategy).value();
  return {};
}

void Coordinator::forward_plugin_logs() {
  std::vector<std::pair<int, std::string>> lines;
  {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    lines.swap(plugin_logs_);
  }
  for (const auto& [severity, message] : lines) {
    log(severity <= 0   ? Observer::Severity::debug
        : severity == 1 ? Observer::Severity::info
        : severity == 2 ? Observer::Severity::warning
                        : Observer::Severity::error,
        message);
  }
}

// Hands an event to the strategy and takes up what it asks for; false when the strategy failed.
bool Coordinator::handle(const StrategyEvent& event) {
  drafts_.clear();
  Result<std::vector<Op>> ops = strategy_->handle(event);
  if (!ops.ok()) {
    drafts_.clear();
    strategy_.reset();  // nothing may follow but its end
    fail(ops.status());
    return false;
  }
  last_seq_ = journal_.append_event(phase_, event, ops.value());
  apply(ops.value());
  return true;
}

// Decides on one request. The draft becomes a trial when the event is accepted.
std::optional<uint64_t> Coordinator::consider(const Op& request) {
  Admission admission = admit(plan_, request.overrides);
  Trial draft;
  draft.phase = phase_;
  draft.model_info = admission.model_info;
  draft.identity = std::move(admission.identity);
  TrialRecord& record = draft.record;
  record.id = trials_.size() + drafts_.size();
  record.parent = request.parent;
  record.config = std::move(admission.config);
  record.overrides = request.overrides;
  record.note = request.note;
  record.submitted_at = loop_.utc_now();

  const auto twins = by_identity_.find(draft.identity);
  const bool known = twins != by_identity_.end() && twins->second.answering;
  if (!admission.invalid.empty()) {
    record.outcome = Outcome::invalid_config;
    record.reason = admission.invalid;
    record.ended_at = record.submitted_at;
    draft.state = TrialState::ended;
  } else if (known && !request.repeat) {
    record.duplicate_of = twins->second.answering;
  }
  record.kind = phase_ == Phase::profiler              ? TrialKind::profile
                : record.duplicate_of                  ? TrialKind::duplicate
                : known && request.repeat              ? TrialKind::repeat
                : draft.identity == baseline_identity_ ? TrialKind::baseline
                                                       : TrialKind::search;
  if (draft.costs_a_run()) {
    if (counted_trials_ >= plan_.max_trials) return std::nullopt;
    ++counted_trials_;
    Twins& own = by_identity_[draft.identity];
    if (!own.answering) own.answering = record.id;
    draft.earlier_runs = own.runs++;
  } else {
    // A strategy may ask for ever in one event.
    const auto fruitful =
        std::find_if(drafts_.rbegin(), drafts_.rend(), [](const Trial& t) { return t.costs_a_run(); });
    if (fruitful - drafts_.rbegin() >= kFruitlessRequests) return std::nullopt;
  }
  drafts_.push_back(std::move(draft));
  return drafts_.back().id();
}

void Coordinator::apply(const std::vector<Op>& ops) {
  for (Trial& draft : drafts_) {
    const uint64_t id = draft.id();
    fruitless_ = draft.costs_a_run() ? 0 : fruitless_ + 1;
    trials_.push_back(std::move(draft));
    ++open_trials_;
    Trial& trial = trials_.back();
    dirty_.insert(id);
    if (trial.record.outcome) {
      immediate_.insert(id);
      observer_.on_trial_ended(trial.record);
    } else if (trial.record.duplicate_of) {
      duplicates_.emplace(*trial.record.duplicate_of, id);
      const Trial& original = trials_[*trial.record.duplicate_of];
      if (original.state == TrialState::delivered) release_duplicates(original);
    } else {
      waiting_.insert(id);
      observer_.on_trial_submitted(trial.record);
    }
  }
  drafts_.clear();
  for (const Op& op : ops) {
    if (op.kind == Op::Kind::stop_trial) {
      to_stop_.insert(*op.trial);
    } else if (op.kind == Op::Kind::set_profile) {
      profile_ = op.profile;
      journal_.put_meta("profile", profile_);
      observer_.on_profile(profile_);
    } else if (op.kind == Op::Kind::finish) {
      strategy_finished_ = true;
      finish_reason_ = op.reason;
      if (phase_ == Phase::searcher) believed_best_ = op.trial;
      best_stale_ = true;
    }
  }
  stop_open_trials();
  if (fruitless_ >= kFruitlessRequests) {
    end_study(StudyStatus::completed, "space_exhausted: " + std::to_string(kFruitlessRequests) +
                                          " requests in a row were duplicates or invalid");
  }
}

// Ends what waits and is to be stopped; what runs is stopped after the commit. A strategy that has finished has no use
// for any open trial.
void Coordinator::stop_open_trials() {
  if (!strategy_finished_ && to_stop_.empty()) return;
  if (strategy_finished_) {
    for (const uint64_t id : waiting_) to_stop_.insert(id);
    for (const uint64_t id : running_) to_stop_.insert(id);
  }
  std::vector<uint64_t> stopped;
  const auto wanted = [&](uint64_t id) { return to_stop_.count(id) != 0; };
  std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(stopped), wanted);
  for (const uint64_t id : stopped) waiting_.erase(id);
  for (auto it = duplicates_.begin(); it != duplicates_.end();) {
    const bool stop = wanted(it->second);
    if (stop) stopped.push_back(it->second);
    it = stop ? duplicates_.erase(it) : std::next(it);
  }
  for (const uint64_t id : stopped) {
    to_stop_.erase(id);
    Trial& trial = trials_[id];
    if (trial.costs_a_run() && !trial.record.started()) --counted_trials_;
    TrialEnd end;
    end.id = id;
    end.outcome = Outcome::stopped;
    end.reason = trial.record.started() ? "stopped" : "stopped before it ran";
    end.ended_at = loop_.utc_now();
    end_trial(trial, std::move(end));
  }
}

Json Coordinator::study_json() const {
  dsat::Study study;
  study.metric = plan_.metric;
  study.maximise = plan_.maximise;
  for (const config::StageSpace& stage : plan_.space.stages) study.zero_stages.push_back(stage.stage);
  study.base_config = plan_.base_config;
  study.space = config::to_json(plan_.space);
  study.limits.max_trials = plan_.max_trials;
  study.limits.max_concurrent_trials = plan_.concurrency();
  study.limits.open_trials = plan_.concurrency() + plan_.concurrency() / kSlotsPerSpareTrial;
  study.limits.slots = static_cast<int64_t>(plan_.slots.slots.size());
  study.limits.slots_per_trial = plan_.slots.slots_per_trial;
  study.limits.data_parallel_size = plan_.data_parallel_size;
  study.limits.profile_trials = plan_.profile_trials.value();
  // A profiler asks its own trial first; with nothing told, the model information has what the vendor's tool says.
  study.device_memory_bytes = phase_ == Phase::searcher ? device_memory() : device_memory_bytes_;
  if (phase_ == Phase::searcher) study.profile = profile_;
  study.observations = Json::array();
  for (const Trial& trial : trials_) {
    if (trial.state != TrialState::delivered || trial.model_info || trial.record.duplicate_of) continue;
    study.observations.push_back({{"trial", trial.id()},
                                  {"config", trial.record.config},
                                  {"outcome", to_string(*trial.record.outcome)},
                                  {"metrics", trial.record.metrics},
                                  {"peak_bytes", trial.record.peak_bytes ? Json(*trial.record.peak_bytes) : Json()}});
  }
  return study.to_json();
}

void Coordinator::save_state() {
  last_state_seq_ = last_seq_;
  if (!journal_.keeps() || !strategy_ || !strategy_started_ || strategy_finished_ || !strategy_->can_save()) return;
  const Result<std::string> state = strategy_->save();
  if (!state.ok()) {
    // Nothing is lost: the events are in the journal and are replayed instead.
    log(Observer::Severity::warning, state.status().message() + "; a resume will replay the events instead");
    return;
  }
  if (passing_state_seq_) journal_.remove_state(phase_, *passing_state_seq_);
  journal_.put_state(phase_, last_seq_, state.value());
  const bool stays = last_seq_ - kept_state_seq_ >= last_seq_ / kKeptStateShare;
  passing_state_seq_ = stays ? std::nullopt : std::optional<uint64_t>(last_seq_);
  if (stays) kept_state_seq_ = last_seq_;
}

}  // namespace dsat::host
