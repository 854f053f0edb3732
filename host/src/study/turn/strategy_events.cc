// Fills the SDK's Study from the state, and copies the parts of a trial's record and end that its strategy may know.
#include "study/turn/strategy_events.h"

#include <algorithm>

#include "command/hugging_face.h"
#include "dsat/study.h"
#include "study/state/phases.h"

namespace dsat::host {
namespace {

// Out of memory is a bound for every size of a trial, but a machine whose memory ran out may hold fewer ranks.
Outcome as_learned(const Trial& trial) { return trial.lacked_host_memory() ? Outcome::failed : *trial.record.outcome; }

Json observations(const std::vector<Trial>& trials, const std::string& precision) {
  Json list = Json::array();
  for (const Trial& trial : trials) {
    if (trial.state != TrialState::delivered || trial.model_info || trial.record.duplicate_of) continue;
    const TrialRecord& record = trial.record;
    list.push_back({{"trial", trial.id()},
                    {"config", with_precision(record.config, precision)},
                    {"outcome", to_string(as_learned(trial))},
                    {"metrics", record.metrics},
                    {"peak_bytes", record.peak_bytes ? Json(*record.peak_bytes) : Json()},
                    {"peak_above_bytes", record.peak_above_bytes ? Json(*record.peak_above_bytes) : Json()},
                    {"allocator_retries", record.allocator_retries}});
  }
  return list;
}

}  // namespace

Json describe_study(const StudyState& state) {
  const Plan& plan = state.plan;
  const bool is_search = state.run.phase == Phase::searcher;
  dsat::Study study;
  study.metric = plan.metric;
  study.maximise = plan.maximise;
  for (const config::StageSpace& stage : plan.space.stages) study.zero_stages.push_back(stage.stage);
  const std::string precision = plan.filled_in_precision();
  study.base_config = with_precision(plan.base_config, precision);
  study.space = config::to_json(plan.space);
  if (plan.max_train_batch_size) study.space["max_train_batch_size"] = *plan.max_train_batch_size;
  study.limits.max_trials = trial_limit(state.run.phase, state);
  study.limits.max_concurrent_trials = plan.concurrency();
  study.limits.open_trials = plan.concurrency() + plan.concurrency() / kSlotsPerSpareTrial;
  study.limits.slots = static_cast<int64_t>(plan.slots.slots.size());
  study.limits.slots_per_trial = plan.slots.slots_per_trial;
  study.limits.data_parallel_size = plan.data_parallel_size;
  study.limits.profile_trials = plan.profile_trials.value();
  // A profiler asks its own trial for the device's memory first; what the vendor's tool says comes with the result.
  study.device_memory_bytes = is_search ? state.device_memory.usable() : state.device_memory.given_or_reported();
  if (is_search) study.profile = state.profile;
  study.observations = observations(state.trials.all(), precision);
  return study.to_json();
}

Json with_engine_version(Json profile, const std::vector<Trial>& trials) {
  constexpr const char* kVersion = "deepspeed_version";
  if (!profile.is_object() || profile.contains(kVersion)) return profile;
  for (const Trial& trial : trials) {
    if (trial.end && !trial.end->engine_version.empty()) profile[kVersion] = trial.end->engine_version;
  }
  return profile;
}

StrategyEvent result_event(const Trial& trial, std::optional<uint64_t> device_memory_bytes) {
  StrategyEvent event;
  event.kind = StrategyEvent::Kind::result;
  event.trial = trial.id();
  event.step = trial.end ? trial.end->step : 0;
  event.metrics = trial.record.metrics.is_object() ? trial.record.metrics : Json::object();
  // The trial's own figure of its device's memory goes before the figure of the vendor's tool.
  if (device_memory_bytes && !event.metrics.contains("device_memory")) {
    event.metrics["device_memory"] = *device_memory_bytes;
  }
  return event;
}

StrategyEvent exit_event(const Trial& trial) {
  StrategyEvent event;
  event.kind = StrategyEvent::Kind::exited;
  event.trial = trial.id();
  // A profile goes on where memory ran out: stage 3 may load the model in parts.
  event.outcome = static_cast<int>(trial.phase == Phase::profiler ? *trial.record.outcome : as_learned(trial));
  event.peak_bytes = trial.record.peak_bytes.value_or(0);
  event.peak_above_bytes = trial.record.peak_above_bytes.value_or(0);
  event.allocator_retries = trial.record.allocator_retries;
  event.reason = trial.record.reason;
  event.attempt = std::max(trial.record.attempt, 1u);
  if (trial.end) {
    event.exit_code = trial.end->exit_code;
    event.term_signal = trial.end->term_signal;
  }
  return event;
}

}  // namespace dsat::host
