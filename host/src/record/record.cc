// Reads a run directory through its journal, and writes what was read as `show --json` has it.
#include "dsat/host/record.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/guarded.h"
#include "dsat/outcome.h"
#include "record/journal.h"
#include "record/run_lock.h"

namespace dsat::host {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

static_assert(static_cast<int>(Outcome::lost) == DSAT_TRIAL_LOST, "the values are those of dsat_trial_outcome");
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

Json to_json(const StudyRecord& record) {
  Json study = record.study;
  study["status"] = to_string(record.status);
  study["reason"] = record.reason;
  study["best"] = record.best ? to_json(*record.best) : Json();
  study["gain"] = record.gain ? to_json(*record.gain) : Json();
  Json trials = Json::array();
  for (const TrialRecord& trial : record.trials) trials.push_back(to_json(trial));
  return {{"study", std::move(study)}, {"profile", record.profile}, {"trials", std::move(trials)}};
}

Json to_json(const Gain& gain) {
  return {{"ratio", gain.ratio},
          {"low", value_or_null(gain.low)},
          {"high", value_or_null(gain.high)},
          {"baseline", gain.baseline}};
}

Json to_json(const BestRecord& best) {
  return {{"trial", best.trial},
          {"config", best.config},
          {"metrics", best.metrics},
          {"metric", best.metric},
          {"why", best.why}};
}

namespace {

BestRecord best_from_json(const Json& json, const std::filesystem::path& file) {
  try {
    return {json.at("trial").get<uint64_t>(), json.at("config"), json.at("metrics"), json.at("metric").get<double>(),
            json.at("why").get<std::string>()};
  } catch (const Json::exception&) {
    throw Error(DSAT_INTERNAL, fmt::format("journal {}: its best configuration: is damaged", file.string()));
  }
}

Gain gain_from_json(const Json& json, const std::filesystem::path& file) {
  const auto bound = [&](const char* key) {
    return json.at(key).is_null() ? std::nullopt : std::optional<double>(json.at(key).get<double>());
  };
  try {
    return {json.at("ratio").get<double>(), bound("low"), bound("high"), json.at("baseline").get<uint64_t>()};
  } catch (const Json::exception&) {
    throw Error(DSAT_INTERNAL, fmt::format("journal {}: its gain: is damaged", file.string()));
  }
}

StudyRecord read_record(const std::filesystem::path& dir) {
  const std::unique_ptr<Journal> journal = Journal::open(dir, Journal::Mode::read_only);
  StudyRecord record;
  record.dir = dir;
  record.study = journal->meta("settings").value_or(Json::object());
  record.profile = journal->meta("profile").value_or(Json());
  const Json ended = journal->meta("ended").value_or(Json());
  if (ended.is_object()) {
    for (const StudyStatus status :
         {StudyStatus::completed, StudyStatus::no_best, StudyStatus::interrupted, StudyStatus::failed}) {
      if (ended.value("status", "") == to_string(status)) record.status = status;
    }
    record.reason = ended.value("reason", "");
  } else if (!RunLock::is_held(dir)) {
    record.status = StudyStatus::interrupted;
    record.reason = "its host was killed; `dsat-host resume` goes on";
  }
  const Json best = journal->meta("best").value_or(Json());
  if (best.is_object()) record.best = best_from_json(best, dir / "dsat.db");
  const Json gain = journal->meta("gain").value_or(Json());
  if (gain.is_object()) record.gain = gain_from_json(gain, dir / "dsat.db");
  std::vector<Trial> trials = journal->trials();
  for (Trial& trial : trials) record.trials.push_back(std::move(trial.record));
  return record;
}

}  // namespace

Result<StudyRecord> read_study(const std::filesystem::path& dir) {
  return as_result([&] { return read_record(dir); });
}

}  // namespace dsat::host
