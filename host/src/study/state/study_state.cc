// The steps that a resumed state and the turns share.
#include "study/state/study_state.h"

#include <algorithm>
#include <utility>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "plan/device_hours.h"
#include "record/versions.h"
#include "study/state/phases.h"
#include "study/watch/guard.h"
#include "study/watch/profile_trials.h"

namespace dsat::host {

StudyState::StudyState(Plan given)
    : plan(std::move(given)),
      best(plan.metric, plan.maximise),
      baseline(baseline_configuration(plan)),
      device_memory(plan),
      watches(baseline_micro_batch(plan)) {
  if (!plan.lacks_configuration()) return;
  // Without ZeRO there is no model of memory to learn by a profile.
  std::optional<NextPhase> first = next_phase(*this);
  run.phase = first->phase;
  run.brief = std::move(first->brief);
}

std::optional<uint64_t> StudyState::memory_for_best() const {
  return plan.memory_margin > 0 ? device_memory.usable() : std::nullopt;
}

void StudyState::add_cost(uint64_t id, const std::string& ended_at) {
  spent_device_hours += device_hours(trials[id].record, ended_at);
  are_hours_changed = true;
}

bool StudyState::grant_repeat(const TrialEnd& end) {
  if (is_spent(plan.budget, spent_device_hours)) return false;
  if (refuses_train_batch(end) && config::find(plan.user_config, config::kTrainBatchKey) == nullptr) {
    is_train_batch_changed = std::exchange(has_train_batch, false) || is_train_batch_changed;
    return watches.failures.grant_rerun(end.id);
  }
  if (end.infrastructure && watches.failures.grant_rerun(end.id)) return true;
  return end.outcome == Outcome::failed && watches.failures.grant_restart(end, plan.max_restarts.value_or(0));
}

std::string StudyState::why_diverged(const TrialEnd& end) const {
  return dsat::host::why_diverged(trials[end.id], end, trials.all(), baseline.identity);
}

std::vector<Finding> StudyState::learn_from(const Trial& trial) {
  std::vector<Finding> findings = watches.after_end(trial, {plan, trials.all(), profile});
  if (auto why = why_no_reference(trial, trials.all(), baseline.identity)) {
    findings.push_back({Finding::Effect::warning, std::move(*why)});
  }
  if (!trial.end) return findings;
  device_memory.learn(trial.end->device_memory_bytes);
  std::vector<int> stages;
  for (const config::StageSpace& stage : plan.space.stages) stages.push_back(stage.stage);
  for (std::string& warning : warn_of_versions(trials.all(), trial.id(), stages)) {
    findings.push_back({Finding::Effect::warning, std::move(warning)});
  }
  if (!plan.engine_version) plan.engine_version = config::parse_engine_version(trial.end->engine_version);
  try {
    std::string warning = follow_world_size(plan, trial);
    if (warning.empty()) return findings;
    findings.push_back({Finding::Effect::warning, std::move(warning)});
    baseline = baseline_configuration(plan);
  } catch (const Error& error) {
    findings.push_back({Finding::Effect::no_best, error.what()});
  }
  return findings;
}

void StudyState::derive_search_space() {
  if (const auto least = least_micro_batch(trials.all())) {
    plan.min_micro_batch = std::max(plan.min_micro_batch, least->works);
  }
  plan.engine_version = engine_version_of(trials.all());
  derive_space(plan, plan.data_parallel_size);
}

void StudyState::put_changes(Journal& journal) {
  for (const uint64_t id : trials.take_changed()) journal.put_trial(trials[id]);
  if (std::exchange(is_train_batch_changed, false)) journal.put_meta(kLeavesOutTrainBatch, true);
  if (const auto reruns = watches.failures.take_changed_reruns()) journal.put_meta("infrastructure_reruns", *reruns);
  if (const auto restarts = watches.failures.take_changed_restarts()) journal.put_meta("restarts", *restarts);
  if (std::exchange(are_hours_changed, false)) journal.put_meta(kSpentDeviceHours, spent_device_hours);
}

}  // namespace dsat::host
