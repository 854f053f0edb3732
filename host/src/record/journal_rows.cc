// Every column is checked, since a disk may damage a journal. An impossible value is an error with the row's number.
#include <fmt/format.h>

#include <new>

#include "record/journal.h"
#include "record/journal_statement.h"
#include "record/journal_words.h"
#include "record/row_digest.h"

namespace dsat::host {
namespace {

constexpr uint64_t kMostAttempts = 1'000'000;
constexpr const char* kSelectTrials =
    "SELECT id, phase, state, kind, parent, duplicate_of, model_info, config, overrides, note, identity, outcome, "
    "reason, metrics, peak_bytes, slots, attempt, submitted_at, started_at, ended_at, end FROM trials ORDER BY id";
constexpr const char* kSelectEvents = "SELECT seq, phase, event, ops FROM events ORDER BY seq";

Json parsed(const std::string& text, const char* name) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error(DSAT_DATA_LOSS, fmt::format("its {} is torn", name));
  return json;
}

Json object_of(const std::string& text, const char* name, bool may_be_null = false) {
  Json json = parsed(text, name);
  if (json.is_object() || (may_be_null && json.is_null())) return json;
  throw Error(DSAT_DATA_LOSS, fmt::format("its {} is no JSON object", name));
}

// Returns "journal FILE: trial 3: its config is torn; ...", without the texts of other libraries. Called while `error`
// is handled; a lack of memory is no damage and is thrown again.
Error damaged(const std::filesystem::path& file, const char* what, size_t row, const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) throw;
  const bool own = dynamic_cast<const Error*>(&error) != nullptr;
  return Error(DSAT_INTERNAL, fmt::format("journal {}: {} {}: {}; {}", file.string(), what, row,
                                          own ? error.what() : "is damaged", kRepairRemedy));
}

}  // namespace

Trial Journal::trial_of(const Statement& row) {
  Trial trial;
  TrialRecord& r = trial.record;
  r.id = row.count_at(0, "id");
  trial.phase = enum_from<Phase>(kPhases, row.get_text(1));
  trial.state = enum_from<TrialState>(kStates, row.get_text(2));
  r.kind = kind_from(row.get_text(3));
  r.parent = row.optional_count_at(4, "parent");
  r.duplicate_of = row.optional_count_at(5, "duplicate_of");
  if (r.duplicate_of && *r.duplicate_of >= r.id) throw Error(DSAT_DATA_LOSS, "it repeats a later trial");
  trial.model_info = row.count_at(6, "model_info", 1) != 0;
  r.config = object_of(row.get_text(7), "config");
  r.note = row.get_text(9);
  trial.identity = row.get_text(10);
  const std::string measured = row.get_text(7) + trial.identity + row.get_text(13);
  r.overrides = object_of(without_digest(row.get_text(8), "row", measured), "overrides");
  if (!row.get_text(11).empty()) r.outcome = outcome_from(row.get_text(11));
  r.reason = row.get_text(12);
  r.metrics = object_of(row.get_text(13), "metrics", true);
  r.peak_bytes = row.optional_count_at(14, "peak_bytes");
  const Json slots = parsed(row.get_text(15), "slots");
  if (!slots.is_array()) throw Error(DSAT_DATA_LOSS, "its slots are no list");
  r.slots = slots.get<std::vector<std::string>>();
  r.attempt = static_cast<uint32_t>(row.count_at(16, "attempt", kMostAttempts));
  r.submitted_at = row.get_text(17);
  r.started_at = row.get_text(18);
  r.ended_at = row.get_text(19);
  if (!row.get_text(20).empty()) read_end(object_of(row.get_text(20), "end"), trial);
  return trial;
}

std::vector<Trial> Journal::trials() {
  std::vector<Trial> trials;
  if (!keeps()) return trials;
  if (!in_turn_) error_.clear();
  try {
    Statement query(*this, kSelectTrials);
    while (query.row()) {
      Trial trial = trial_of(query);
      if (trial.id() != trials.size()) throw Error(DSAT_DATA_LOSS, "is missing");
      trials.push_back(std::move(trial));
    }
  } catch (const std::exception& e) {
    throw damaged(file_, "trial", trials.size(), e);
  }
  throw_error();
  return trials;
}

JournalEvent Journal::event_of(const Statement& row) {
  JournalEvent entry;
  entry.seq = row.count_at(0, "seq");
  entry.phase = enum_from<Phase>(kPhases, row.get_text(1));
  entry.ops_text = row.get_text(3);
  entry.event = event_from_json(object_of(without_digest(row.get_text(2), "row", entry.ops_text), "event"));
  const Json ops = parsed(entry.ops_text, "ops");
  if (!ops.is_array()) throw Error(DSAT_DATA_LOSS, "its ops are no list");
  for (const Json& op : ops) entry.ops.push_back(op_from_json(op));
  return entry;
}

std::vector<JournalEvent> Journal::events() {
  std::vector<JournalEvent> events;
  if (!keeps()) return events;
  if (!in_turn_) error_.clear();
  try {
    Statement query(*this, kSelectEvents);
    while (query.row()) {
      JournalEvent entry = event_of(query);
      if (entry.seq != events.size()) throw Error(DSAT_DATA_LOSS, "is missing");
      events.push_back(std::move(entry));
    }
  } catch (const std::exception& e) {
    throw damaged(file_, "event", events.size(), e);
  }
  throw_error();
  return events;
}

std::optional<Json> Journal::meta(const std::string& key) {
  if (!keeps()) return std::nullopt;
  Statement query(*this, "SELECT value FROM meta WHERE key = ?");
  query.text(key);
  if (!query.row()) return std::nullopt;
  try {
    return parsed(without_digest(query.get_text(0), "value", key), "value");
  } catch (const Error&) {
    if (!is_strict_) return std::nullopt;
    throw Error(DSAT_INTERNAL, fmt::format("journal {}: its {} is damaged; {}", file_.string(), key, kRepairRemedy));
  }
}

std::optional<Phase> Journal::last_phase() {
  if (!keeps()) return std::nullopt;
  try {
    Statement query(*this, "SELECT phase FROM events ORDER BY seq DESC LIMIT 1");
    if (query.row()) return enum_from<Phase>(kPhases, query.get_text(0));
  } catch (const std::exception& e) {
    throw damaged(file_, "event", next_seq_ - 1, e);
  }
  throw_error();
  return std::nullopt;
}

std::optional<SavedState> Journal::state(Phase phase, uint64_t last_seq) {
  if (!keeps()) return std::nullopt;
  Statement query(*this, "SELECT seq, state FROM states WHERE phase = ? AND seq <= ? ORDER BY seq DESC LIMIT 1");
  query.text(name_of(phase)).integer(last_seq);
  if (!query.row()) return std::nullopt;
  return SavedState{query.get_integer(0), query.get_text(1)};
}

Journal::Salvaged Journal::salvage() {
  Salvaged found;
  const auto read_rows = [&](const char* what, const char* table, const char* sql, const auto& take) {
    error_.clear();
    Statement query(*this, sql);
    while (query.row()) {
      try {
        take(query);
      } catch (const std::bad_alloc&) {
        throw;
      } catch (const std::exception& e) {
        const bool own = dynamic_cast<const Error*>(&e) != nullptr;
        found.losses.push_back(fmt::format("{} {}: {}", what, query.get_integer(0), own ? e.what() : "is damaged"));
      }
    }
    if (!error_.empty()) found.losses.push_back(fmt::format("{}: {}", table, sqlite3_errmsg(db_)));
  };
  read_rows("trial", "trials", kSelectTrials, [&](const Statement& row) { found.trials.push_back(trial_of(row)); });
  read_rows("event", "events", kSelectEvents, [&](const Statement& row) { found.events.push_back(event_of(row)); });
  read_rows("meta", "meta", "SELECT 0, key, value FROM meta", [&](const Statement& row) {
    const std::string key = row.get_text(1);
    found.meta[key] = parsed(without_digest(row.get_text(2), key.c_str(), key), key.c_str());
  });
  error_.clear();
  return found;
}

}  // namespace dsat::host
