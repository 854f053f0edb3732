// Reads meta values and trials in one transaction. A study without an end is running if its host holds the lock,
// otherwise it was killed.
#include "record/read_journal.h"

#include <fmt/format.h>

#include "base/guarded.h"
#include "dsat/config/json_numbers.h"
#include "record/journal.h"
#include "record/run_lock.h"
#include "record/shown_settings.h"

namespace dsat::host {
namespace {

BestRecord best_from_json(const Json& json, const std::filesystem::path& file) {
  try {
    return {config::whole_number<uint64_t>(json.at("trial")), json.at("config"), json.at("metrics"),
            json.at("metric").get<double>(), json.at("why").get<std::string>()};
  } catch (const std::exception&) {
    throw Error(DSAT_INTERNAL, fmt::format("journal {}: its best configuration is damaged", file.string()));
  }
}

Gain gain_from_json(const Json& json, const std::filesystem::path& file) {
  const auto bound = [&](const char* key) {
    return json.at(key).is_null() ? std::nullopt : std::optional<double>(json.at(key).get<double>());
  };
  const auto side = [&](const char* key) {
    const Json& given = json.at(key);
    return Gain::Side{given.at("value").get<double>(), config::whole_number<int>(given.at("measurements"))};
  };
  try {
    return {json.at("ratio").get<double>(),
            bound("low"),
            bound("high"),
            config::whole_number<uint64_t>(json.at("baseline")),
            side("of_best"),
            side("of_own"),
            config::whole_number<int>(json.at("left_out"))};
  } catch (const std::exception&) {
    throw Error(DSAT_INTERNAL, fmt::format("journal {}: its gain is damaged", file.string()));
  }
}

// Returns a row of meta that holds an object; empty: the row is damaged or absent.
Json object_of(Journal& journal, const char* key) {
  Json row = journal.meta(key).value_or(Json::object());
  return row.is_object() ? row : Json::object();
}

}  // namespace

JournalReading read_journal(const std::filesystem::path& dir) {
  const std::unique_ptr<Journal> journal = Journal::open(dir, Journal::Mode::read_only);
  // The lock is checked before reading: a host that ends in between has written its end.
  const bool live = RunLock::is_held(dir);
  journal->hold_snapshot();
  JournalReading reading;
  StudyRecord& record = reading.record;
  record.dir = dir;
  record.study = shown_settings(object_of(*journal, "settings"));
  record.profile = journal->meta("profile").value_or(Json());
  const Json ended = journal->meta("ended").value_or(Json());
  if (ended.is_object()) {
    for (const StudyStatus status :
         {StudyStatus::completed, StudyStatus::no_best, StudyStatus::interrupted, StudyStatus::failed}) {
      if (ended.value("status", "") == to_string(status)) record.status = status;
    }
    record.reason = ended.value("reason", "");
  } else if (!live) {
    record.status = StudyStatus::interrupted;
    record.reason = "its host was killed; `dsat-host resume` goes on";
  }
  const Json best = journal->meta("best").value_or(Json());
  if (best.is_object()) record.best = best_from_json(best, dir / "dsat.db");
  const Json gain = journal->meta("gain").value_or(Json());
  if (gain.is_object()) record.gain = gain_from_json(gain, dir / "dsat.db");
  reading.plan = shown_settings(object_of(*journal, "plan"));
  const Json own = journal->meta("own").value_or(Json());
  if (own.is_string()) reading.own = own.get<std::string>();
  const Json spent = journal->meta(kSpentDeviceHours).value_or(Json());
  if (spent.is_number()) reading.spent_device_hours = spent.get<double>();
  reading.trials = journal->trials();
  for (const Trial& trial : reading.trials) record.trials.push_back(trial.record);
  return reading;
}

Result<StudyRecord> read_study(const std::filesystem::path& dir) {
  return as_result([&] { return std::move(read_journal(dir).record); });
}

}  // namespace dsat::host
