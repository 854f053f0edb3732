// Writes a record as `show --json` prints it. Every member is present; missing values are null.
#include "dsat/host/record.h"

#include <algorithm>
#include <cmath>

#include "dsat/outcome.h"

namespace dsat::host {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// JSON has no numbers for these.
Json number_or_word(const std::optional<double>& value) {
  if (!value) return nullptr;
  if (std::isnan(*value)) return "nan";
  if (std::isinf(*value)) return *value > 0 ? "inf" : "-inf";
  return *value;
}

Json list_of(const std::vector<std::optional<double>>& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(number_or_word(value));
  return list;
}

}  // namespace

Json to_json(const Curve& curve) {
  if (curve.empty()) return nullptr;
  return {{"losses", list_of(curve.losses)}, {"grad_norms", list_of(curve.grad_norms)}};
}

static_assert(static_cast<int>(Outcome::diverged) == DSAT_TRIAL_DIVERGED, "the values are those of dsat_trial_outcome");
const char* to_string(Outcome outcome) { return outcome_name(static_cast<dsat::Outcome>(outcome)); }

const char* to_string(TrialKind kind) {
  switch (kind) {
    case TrialKind::profile:
      return "profile";
    case TrialKind::search:
      return "search";
    case TrialKind::repeat:
      return "repeat";
    case TrialKind::baseline:
      return "baseline";
    case TrialKind::duplicate:
      return "duplicate";
  }
  return "search";
}

const char* to_string(StudyStatus status) {
  switch (status) {
    case StudyStatus::running:
      return "running";
    case StudyStatus::completed:
      return "completed";
    case StudyStatus::no_best:
      return "no_best";
    case StudyStatus::interrupted:
      return "interrupted";
    case StudyStatus::failed:
      return "failed";
  }
  return "failed";
}

Json to_json(const TrialRecord& trial) {
  return {{"id", trial.id},
          {"parent", value_or_null(trial.parent)},
          {"kind", to_string(trial.kind)},
          {"duplicate_of", value_or_null(trial.duplicate_of)},
          {"config", trial.config},
          {"overrides", trial.overrides},
          {"note", trial.note},
          {"outcome", trial.outcome ? Json(to_string(*trial.outcome)) : Json()},
          {"reason", trial.reason},
          {"metrics", trial.metrics},
          {"curve", to_json(trial.curve)},
          {"peak_bytes", value_or_null(trial.peak_bytes)},
          {"peak_source", text_or_null(trial.peak_source)},
          {"peak_above_bytes", value_or_null(trial.peak_above_bytes)},
          {"allocator_retries", trial.allocator_retries},
          {"slots", trial.slots},
          {"attempt", trial.attempt},
          {"submitted_at", text_or_null(trial.submitted_at)},
          {"started_at", text_or_null(trial.started_at)},
          {"ended_at", text_or_null(trial.ended_at)}};
}

std::map<Outcome, int> StudyRecord::counts() const {
  std::map<Outcome, int> counts;
  for (const TrialRecord& trial : trials) {
    if (trial.outcome && !trial.duplicate_of) ++counts[*trial.outcome];
  }
  return counts;
}

int StudyRecord::started() const {
  return static_cast<int>(
      std::count_if(trials.begin(), trials.end(), [](const TrialRecord& t) { return t.started(); }));
}

Json to_json_without_trials(const StudyRecord& record) {
  Json study = record.study;
  study["status"] = to_string(record.status);
  study["reason"] = record.reason;
  study["best"] = record.best ? to_json(*record.best) : Json();
  study["gain"] = record.gain ? to_json(*record.gain) : Json();
  return {{"study", std::move(study)}, {"profile", record.profile}, {"trials", Json::array()}};
}

Json to_json(const StudyRecord& record) {
  Json json = to_json_without_trials(record);
  for (const TrialRecord& trial : record.trials) json["trials"].push_back(to_json(trial));
  return json;
}

static Json to_json(const Gain::Side& side) { return {{"value", side.value}, {"measurements", side.measurements}}; }

Json to_json(const Gain& gain) {
  return {{"ratio", gain.ratio},       {"low", value_or_null(gain.low)},   {"high", value_or_null(gain.high)},
          {"baseline", gain.baseline}, {"of_best", to_json(gain.of_best)}, {"of_own", to_json(gain.of_own)},
          {"left_out", gain.left_out}};
}

Json to_json(const EndToEnd& end_to_end) {
  return {{"wall_us", end_to_end.wall_us},
          {"engine_us", end_to_end.engine_us},
          {"ratio", value_or_null(end_to_end.ratio)},
          {"script_bound", end_to_end.is_script_bound()}};
}

Json to_json(const TwinCheck& check) {
  constexpr const char* kStates[] = {"agrees", "own", "unchecked"};
  return {{"state", kStates[static_cast<size_t>(check.state)]},
          {"twin", value_or_null(check.twin)},
          {"text", check.text}};
}

Json to_json(const BestRecord& best) {
  return {{"trial", best.trial},
          {"config", best.config},
          {"metrics", best.metrics},
          {"metric", best.metric},
          {"why", best.why}};
}

}  // namespace dsat::host
