// The document of the page: `show --json` with more members. docs/report.md describes every member.
#include <cmath>

#include "dsat/host/facts.h"

namespace dsat::host {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json to_json(const std::optional<Estimate>& estimate) {
  if (!estimate) return Json();
  return {{"value", number(estimate->value)}, {"low", number(estimate->low)}, {"high", number(estimate->high)}};
}

void add(Json& json, const TrialFacts& trial) {
  json["phase"] = trial.phase;
  json["place"] = to_string(trial.place);
  json["model_info"] = trial.model_info;
  json["devices"] = trial.devices;
  json["stage"] = trial.stage;
  json["micro_batch"] = or_null(trial.micro_batch);
  json["accumulation"] = or_null(trial.accumulation);
  json["train_batch"] = or_null(trial.train_batch);
  json["value"] = or_null(trial.value);
  json["peak_estimate"] = to_json(trial.peak_estimate);
  json["run_seconds"] = or_null(trial.run_seconds);
  json["exit_code"] = or_null(trial.exit_code);
  json["term_signal"] = or_null(trial.term_signal);
  json["warnings"] = trial.warnings;
  json["stderr_tail"] = trial.stderr_tail;
  json["engine_version"] = trial.engine_version;
  json["torch_version"] = trial.torch_version;
  json["driver_version"] = trial.driver_version;
  json["checkpoint_outside"] = trial.checkpoint_outside;
}

Json to_json(const StageFacts& stage) {
  return {{"stage", stage.stage},
          {"trials", stage.trials},
          {"out_of_memory", stage.out_of_memory},
          {"failed", stage.failed},
          {"best_trial", or_null(stage.best_trial)},
          {"best_value", or_null(stage.best_value)},
          {"ceiling", to_json(stage.ceiling)},
          {"largest_that_fitted", or_null(stage.largest_that_fitted)},
          {"smallest_out_of_memory", or_null(stage.smallest_out_of_memory)}};
}

Json to_json(const Progress& progress) {
  return {{"max_trials", progress.max_trials},
          {"started", progress.started},
          {"running", progress.running},
          {"waiting", progress.waiting},
          {"ended", progress.ended},
          {"started_at", progress.started_at.empty() ? Json() : Json(progress.started_at)},
          {"last_at", progress.last_at.empty() ? Json() : Json(progress.last_at)},
          {"elapsed_seconds", or_null(progress.elapsed_seconds)},
          {"time_budget_seconds", or_null(progress.time_budget_seconds)},
          {"seconds_left", or_null(progress.seconds_left)}};
}

Json to_json(const Payback& payback) {
  return {{"spent_device_hours", payback.spent_device_hours},
          {"saved_device_hours_per_day", or_null(payback.saved_device_hours_per_day)},
          {"days", or_null(payback.days)}};
}

Json to_json(const Knob& knob) {
  Json values = Json::array();
  for (const KnobValue& value : knob.values) {
    values.push_back({{"value", value.value}, {"trials", value.trials}, {"mean", value.mean}, {"best", value.best}});
  }
  return {{"key", knob.key}, {"share", knob.share}, {"values", std::move(values)}};
}

}  // namespace

Json trial_to_json(const StudyFacts& facts, size_t index) {
  Json json = to_json(facts.record.trials[index]);
  add(json, facts.trials[index]);
  return json;
}

Json to_json_without_trials(const StudyFacts& facts) {
  Json json = to_json_without_trials(facts.record);
  json["schema"] = 1;
  json["study"]["dir"] = facts.record.dir.string();
  json["study"]["gain"] = facts.gain ? to_json(*facts.gain) : Json();
  json["study"]["end_to_end"] = facts.end_to_end ? to_json(*facts.end_to_end) : Json();
  json["study"]["check"] = facts.check ? to_json(*facts.check) : Json();
  json["study"]["divergences"] = facts.divergences;
  Json best = json.at("study").at("best");
  json["best"] = std::move(best);
  json["progress"] = to_json(facts.progress);
  for (const char* key : {"stages", "best_path", "changes", "knobs"}) json[key] = Json::array();
  for (const StageFacts& stage : facts.stages) json["stages"].push_back(to_json(stage));
  for (const BestStep& step : facts.best_path)
    json["best_path"].push_back({{"trial", step.trial}, {"value", step.value}});
  for (const ConfigChange& change : facts.changes) {
    json["changes"].push_back({{"key", change.key}, {"own", change.own}, {"best", change.best}});
  }
  for (const Knob& knob : facts.knobs) json["knobs"].push_back(to_json(knob));
  json["baseline"] = or_null(facts.baseline);
  json["has_own"] = facts.has_own;
  json["changed_train_batch"] = facts.changed_train_batch;
  json["device_memory_bytes"] = or_null(facts.device_memory_bytes);
  json["payback"] = to_json(facts.payback);
  json["plan"] = facts.plan;
  return json;
}

Json to_json(const StudyFacts& facts) {
  Json json = to_json_without_trials(facts);
  for (size_t i = 0; i < facts.trials.size(); ++i) json["trials"].push_back(trial_to_json(facts, i));
  return json;
}

}  // namespace dsat::host
