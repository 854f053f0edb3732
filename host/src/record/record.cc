#include "dsat/host/record.h"

#include <algorithm>

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

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::completed:
      return "completed";
    case Outcome::out_of_memory:
      return "out_of_memory";
    case Outcome::failed:
      return "failed";
    case Outcome::timed_out:
      return "timed_out";
    case Outcome::invalid_config:
      return "invalid_config";
    case Outcome::stopped:
      return "stopped";
    case Outcome::lost:
      return "lost";
  }
  return "failed";
}

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
  study["best"] = nullptr;
  if (record.best) {
    study["best"] = {{"trial", record.best->trial},
                     {"config", record.best->config},
                     {"metrics", record.best->metrics},
                     {"metric", record.best->metric},
                     {"why", record.best->why}};
  }
  Json trials = Json::array();
  for (const TrialRecord& trial : record.trials) trials.push_back(to_json(trial));
  return {{"study", std::move(study)}, {"profile", record.profile}, {"trials", std::move(trials)}};
}

Result<StudyRecord> read_study(const std::filesystem::path& dir) {
  Result<std::unique_ptr<Journal>> journal = Journal::open(dir, Journal::Mode::read_only);
  if (!journal.ok()) return journal.status();
  Journal& db = *journal.value();
  StudyRecord record;
  record.dir = dir;
  record.study = db.meta("settings").value_or(Json::object());
  record.profile = db.meta("profile").value_or(Json());
  const Json ended = db.meta("ended").value_or(Json());
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
  const Json best = db.meta("best").value_or(Json());
  try {
    if (best.is_object()) {
      record.best = BestRecord{best.at("trial").get<uint64_t>(), best.at("config"), best.at("metrics"),
                               best.at("metric").get<double>(), best.at("why").get<std::string>()};
    }
  } catch (const std::exception& e) {
    return Status::internal("journal " + (dir / "dsat.db").string() + ": its best configuration: " + e.what());
  }
  Result<std::vector<Trial>> trials = db.trials();
  if (!trials.ok()) return trials.status();
  for (Trial& trial : trials.value()) record.trials.push_back(std::move(trial.record));
  return record;
}

}  // namespace dsat::host
