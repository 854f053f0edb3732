// Writes and reads the study's database through prepared statements. A failure is kept until the turn's commit, so that
// nothing is written after it.
#include "record/journal.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/vfs.h>

#include <algorithm>
#include <system_error>

#include "dsat/outcome.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE trials(
  id INTEGER PRIMARY KEY, phase TEXT NOT NULL, state TEXT NOT NULL, kind TEXT NOT NULL, parent INTEGER,
  duplicate_of INTEGER, model_info INTEGER NOT NULL, config TEXT NOT NULL, overrides TEXT NOT NULL, note TEXT NOT NULL,
  identity TEXT NOT NULL, outcome TEXT, reason TEXT NOT NULL, metrics TEXT NOT NULL, peak_bytes INTEGER,
  slots TEXT NOT NULL, attempt INTEGER NOT NULL, submitted_at TEXT NOT NULL, started_at TEXT NOT NULL,
  ended_at TEXT NOT NULL, end TEXT);
CREATE TABLE events(seq INTEGER PRIMARY KEY, phase TEXT NOT NULL, event TEXT NOT NULL, ops TEXT NOT NULL);
CREATE TABLE states(phase TEXT NOT NULL, seq INTEGER NOT NULL, state BLOB NOT NULL, PRIMARY KEY(phase, seq)) )"
                                R"(WITHOUT ROWID;
)";

constexpr const char* kPhases[] = {"profiler", "baseline", "searcher", "finals", "verification", "comparison"};
// A trial that is being stopped still runs; "running" is read as the first of the two.
constexpr const char* kStates[] = {"waiting", "running", "running", "ended", "delivered"};

Error unknown_word(const std::string& name) { return {DSAT_DATA_LOSS, fmt::format("unknown word '{}'", name)}; }

template <class Enum, size_t N>
Enum enum_from(const char* const (&names)[N], const std::string& name) {
  const auto* found = std::find_if(std::begin(names), std::end(names), [&](const char* n) { return name == n; });
  if (found == std::end(names)) throw unknown_word(name);
  return static_cast<Enum>(found - std::begin(names));
}

const char* name_of(Phase phase) { return kPhases[static_cast<size_t>(phase)]; }

TrialKind kind_from(const std::string& name) {
  static constexpr const char* kNames[] = {"profile", "search", "repeat", "baseline", "duplicate"};
  return enum_from<TrialKind>(kNames, name);
}

Outcome outcome_from(const std::string& name) {
  const std::optional<dsat::Outcome> outcome = outcome_named(name);
  if (!outcome) throw unknown_word(name);
  return static_cast<Outcome>(*outcome);
}

// Write-ahead logging needs shared memory between processes, which network file systems do not have.
bool on_local_file_system(const fs::path& dir) {
  struct statfs info {};
  if (statfs(dir.c_str(), &info) != 0) return false;
  constexpr unsigned long kLocal[] = {
      0xEF53 /* ext */,      0x58465342 /* xfs */,     0x9123683E /* btrfs */, 0x01021994 /* tmpfs */,
      0xF2F52010 /* f2fs */, 0x794C7630 /* overlay */, 0x2FC12FC1 /* zfs */,   0x858458F6 /* ramfs */};
  const auto type = static_cast<unsigned long>(info.f_type) & 0xFFFFFFFFul;
  return std::find(std::begin(kLocal), std::end(kLocal), type) != std::end(kLocal);
}

std::string uri_escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      constexpr char kDigits[] = "0123456789ABCDEF";
      text += {'%', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[static_cast<unsigned char>(c) & 15]};
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

// A prepared statement with its values bound, in order.
class Journal::Statement {
 public:
  Statement(Journal& journal, const char* sql) : journal_(journal) {
    if (sqlite3_prepare_v2(journal.db_, sql, -1, &raw_, nullptr) != SQLITE_OK) journal.fail("prepare");
  }
  ~Statement() { sqlite3_finalize(raw_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& text(const std::string& value) {
    sqlite3_bind_text(raw_, ++bound_, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& blob(const std::string& value) {
    sqlite3_bind_blob64(raw_, ++bound_, value.data(), value.size(), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& integer(uint64_t value) {
    sqlite3_bind_int64(raw_, ++bound_, static_cast<sqlite3_int64>(value));
    return *this;
  }
  Statement& integer(std::optional<uint64_t> value) {
    if (value) return integer(*value);
    sqlite3_bind_null(raw_, ++bound_);
    return *this;
  }
  // After a failure SQLite may have rolled back on its own: what follows would be committed each by itself.
  void run(const char* doing) {
    if (!journal_.error_.empty()) return;
    if (raw_ != nullptr && sqlite3_step(raw_) != SQLITE_DONE) journal_.fail(doing);
  }
  // False at the end, and when reading fails: the journal's error says which.
  bool row() {
    if (raw_ == nullptr) return false;
    const int status = sqlite3_step(raw_);
    if (status != SQLITE_ROW && status != SQLITE_DONE) journal_.fail("read");
    return status == SQLITE_ROW;
  }

  std::string get_text(int column) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(raw_, column));
    return data == nullptr ? std::string() : std::string(data, static_cast<size_t>(sqlite3_column_bytes(raw_, column)));
  }
  uint64_t get_integer(int column) const { return static_cast<uint64_t>(sqlite3_column_int64(raw_, column)); }
  std::optional<uint64_t> get_optional(int column) const {
    if (sqlite3_column_type(raw_, column) == SQLITE_NULL) return std::nullopt;
    return get_integer(column);
  }

 private:
  Journal& journal_;
  sqlite3_stmt* raw_ = nullptr;
  int bound_ = 0;
};

std::unique_ptr<Journal> Journal::open(const fs::path& dir, Mode mode) {
  std::unique_ptr<Journal> journal(new Journal);
  journal->file_ = dir / "dsat.db";
  std::error_code error;
  const bool exists = fs::exists(journal->file_, error);
  if (mode == Mode::create && exists) {
    throw Error(
        fmt::format("output directory {}: holds another study; give a fresh --output-dir, or `dsat-host resume` "
                    "to take it up",
                    dir.string()));
  }
  if (mode != Mode::create && !exists) {
    throw Error(
        fmt::format("{}: holds no study (no dsat.db); give the folder that a study was written to", dir.string()));
  }
  const int flags = mode == Mode::read_only ? SQLITE_OPEN_READONLY
                                            : SQLITE_OPEN_READWRITE | (mode == Mode::create ? SQLITE_OPEN_CREATE : 0);
  try {
    journal->open_database(journal->file_, flags);
    journal->prepare_schema(mode);
  } catch (const Error&) {
    if (mode != Mode::read_only) throw;
    // Read-only media can hold no lock or log file: the file as it is, promised not to change.
    sqlite3_close(journal->db_);
    journal->error_.clear();
    journal->open_database("file:" + uri_escaped(journal->file_.string()) + "?immutable=1", flags | SQLITE_OPEN_URI);
    journal->prepare_schema(mode);
  }
  return journal;
}

void Journal::open_database(const std::string& name, int flags) {
  const int status = sqlite3_open_v2(name.c_str(), &db_, flags, nullptr);
  if (status == SQLITE_OK) return;
  throw Error(DSAT_INTERNAL, fmt::format("{}: {}", file_.string(), sqlite3_errstr(status)));
}

Journal::~Journal() { sqlite3_close(db_); }

void Journal::prepare_schema(Mode mode) {
  sqlite3_busy_timeout(db_, 5000);
  if (mode != Mode::read_only) {
    execute(on_local_file_system(file_.parent_path()) ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE");
    execute("PRAGMA synchronous=FULL");
  }
  if (mode == Mode::create) {
    begin();
    execute(kSchema);
    put_meta("schema", kJournalSchema);
    return commit();
  }
  Statement tables(*this, "SELECT 1 FROM sqlite_master WHERE name = 'meta'");
  const bool ours = tables.row();
  const auto no_journal = [this] { return Error(file_.string() + ": is no journal of a study"); };
  if (!ours && (error_.empty() || sqlite3_errcode(db_) == SQLITE_NOTADB)) throw no_journal();
  const std::optional<Json> schema = meta("schema");
  throw_error();
  if (!schema) throw no_journal();
  if (*schema != kJournalSchema) {
    throw Error(fmt::format("{}: journal schema {}, this dsat reads {}; use the version that wrote it", file_.string(),
                            schema->dump(), kJournalSchema));
  }
  Statement last(*this, "SELECT max(seq) + 1 FROM events");
  if (last.row()) next_seq_ = last.get_integer(0);
  throw_error();
}

void Journal::fail(const std::string& doing) {
  if (!error_.empty()) return;
  const int code = sqlite3_errcode(db_) & 0xff;
  const char* remedy = code == SQLITE_CORRUPT || code == SQLITE_NOTADB
                           ? "; the file is damaged: put a copy of it back"
                           : "; free space or mend the file system, then `dsat-host resume`";
  error_ = fmt::format("journal {}: {}: {}{}", file_.string(), doing, sqlite3_errmsg(db_), remedy);
}

void Journal::throw_error() const {
  if (!error_.empty()) throw Error(DSAT_INTERNAL, error_);
}

// Programs print what they like, and dump() would throw at what is no UTF-8.
std::string Journal::text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void Journal::execute(const std::string& sql) {
  if (!error_.empty()) return;
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail("write");
}

void Journal::begin() {
  if (!keeps()) return;
  if (in_turn_) return;
  error_.clear();
  execute("BEGIN IMMEDIATE");
  seq_before_turn_ = next_seq_;
  in_turn_ = true;
}

void Journal::commit() {
  if (!in_turn_) return;
  execute("COMMIT");
  if (!error_.empty()) rollback();
  in_turn_ = false;
  throw_error();
}

void Journal::rollback() {
  if (!in_turn_) return;
  in_turn_ = false;
  sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  next_seq_ = seq_before_turn_;
}

void Journal::put_meta(const std::string& key, const Json& value) {
  if (!keeps()) return;
  Statement(*this, "INSERT OR REPLACE INTO meta VALUES(?, ?)").text(key).text(text_of(value)).run("write");
}

void Journal::put_trial(const Trial& trial) {
  if (!keeps()) return;
  const TrialRecord& r = trial.record;
  Statement(*this, "INSERT OR REPLACE INTO trials VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .integer(r.id)
      .text(name_of(trial.phase))
      .text(kStates[static_cast<size_t>(trial.state)])
      .text(to_string(r.kind))
      .integer(r.parent)
      .integer(r.duplicate_of)
      .integer(uint64_t{trial.model_info})
      .text(text_of(r.config))
      .text(text_of(r.overrides))
      .text(r.note)
      .text(trial.identity)
      .text(r.outcome ? to_string(*r.outcome) : "")
      .text(r.reason)
      .text(text_of(r.metrics))
      .integer(r.peak_bytes)
      .text(text_of(r.slots))
      .integer(uint64_t{r.attempt})
      .text(r.submitted_at)
      .text(r.started_at)
      .text(r.ended_at)
      .text(trial.end ? text_of(to_json(*trial.end)) : "")
      .run("write a trial");
}

void Journal::remove_trials_from(uint64_t id) {
  if (!keeps()) return;
  Statement(*this, "DELETE FROM trials WHERE id >= ?").integer(id).run("remove trials");
}

uint64_t Journal::append_event(Phase phase, const StrategyEvent& event, const std::vector<Op>& ops) {
  const uint64_t seq = next_seq_++;
  if (!keeps()) return seq;
  Statement(*this, "INSERT INTO events VALUES(?,?,?,?)")
      .integer(seq)
      .text(name_of(phase))
      .text(text_of(to_json(event)))
      .text(text_of(to_json(ops)))
      .run("write an event");
  return seq;
}

void Journal::remove_events_from(uint64_t seq) {
  if (!keeps()) return;
  Statement(*this, "DELETE FROM events WHERE seq >= ?").integer(seq).run("remove events");
  Statement(*this, "DELETE FROM states WHERE seq >= ?").integer(seq).run("remove states");
  next_seq_ = seq;
}

void Journal::put_state(Phase phase, uint64_t seq, const std::string& state) {
  if (!keeps()) return;
  Statement(*this, "INSERT OR REPLACE INTO states VALUES(?,?,?)")
      .text(name_of(phase))
      .integer(seq)
      .blob(state)
      .run("write a state");
}

void Journal::remove_state(Phase phase, uint64_t seq) {
  if (!keeps()) return;
  Statement(*this, "DELETE FROM states WHERE phase = ? AND seq = ?")
      .text(name_of(phase))
      .integer(seq)
      .run("remove a state");
}

void Journal::remove_states(Phase phase) {
  if (!keeps()) return;
  Statement(*this, "DELETE FROM states WHERE phase = ?").text(name_of(phase)).run("remove states");
}

std::optional<Json> Journal::meta(const std::string& key) {
  if (!keeps()) return std::nullopt;
  Statement query(*this, "SELECT value FROM meta WHERE key = ?");
  query.text(key);
  if (!query.row()) return std::nullopt;
  Json value = Json::parse(query.get_text(0), nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

// A row that cannot be read. What nlohmann/json says of a torn text helps nobody.
Error Journal::damaged(const char* what, size_t row, const std::exception& error) const {
  const bool own = dynamic_cast<const Error*>(&error) != nullptr;
  return Error(DSAT_INTERNAL, fmt::format("journal {}: {} {}: {}", file_.string(), what, row,
                                          own ? error.what() : "is damaged; put a copy of the file back"));
}

std::vector<Trial> Journal::trials() {
  std::vector<Trial> trials;
  if (!keeps()) return trials;
  if (!in_turn_) error_.clear();
  try {
    Statement query(*this, "SELECT * FROM trials ORDER BY id");
    while (query.row()) {
      Trial trial;
      TrialRecord& r = trial.record;
      r.id = query.get_integer(0);
      if (r.id != trials.size()) throw Error(DSAT_DATA_LOSS, "is missing");
      trial.phase = enum_from<Phase>(kPhases, query.get_text(1));
      trial.state = enum_from<TrialState>(kStates, query.get_text(2));
      r.kind = kind_from(query.get_text(3));
      r.parent = query.get_optional(4);
      r.duplicate_of = query.get_optional(5);
      trial.model_info = query.get_integer(6) != 0;
      r.config = Json::parse(query.get_text(7));
      r.overrides = Json::parse(query.get_text(8));
      r.note = query.get_text(9);
      trial.identity = query.get_text(10);
      if (!query.get_text(11).empty()) r.outcome = outcome_from(query.get_text(11));
      r.reason = query.get_text(12);
      r.metrics = Json::parse(query.get_text(13));
      r.peak_bytes = query.get_optional(14);
      r.slots = Json::parse(query.get_text(15)).get<std::vector<std::string>>();
      r.attempt = static_cast<uint32_t>(query.get_integer(16));
      r.submitted_at = query.get_text(17);
      r.started_at = query.get_text(18);
      r.ended_at = query.get_text(19);
      if (!query.get_text(20).empty()) {
        trial.end = trial_end_from_json(Json::parse(query.get_text(20)));
        take_memory(r, *trial.end);
      }
      trials.push_back(std::move(trial));
    }
  } catch (const std::exception& e) {
    throw damaged("trial", trials.size(), e);
  }
  throw_error();
  return trials;
}

std::vector<JournalEvent> Journal::events() {
  std::vector<JournalEvent> events;
  if (!keeps()) return events;
  if (!in_turn_) error_.clear();
  try {
    Statement query(*this, "SELECT seq, phase, event, ops FROM events ORDER BY seq");
    while (query.row()) {
      JournalEvent entry;
      entry.seq = query.get_integer(0);
      entry.phase = enum_from<Phase>(kPhases, query.get_text(1));
      entry.event = event_from_json(Json::parse(query.get_text(2)));
      entry.ops_text = query.get_text(3);
      for (const Json& op : Json::parse(entry.ops_text)) entry.ops.push_back(op_from_json(op));
      events.push_back(std::move(entry));
    }
  } catch (const std::exception& e) {
    throw damaged("event", events.size(), e);
  }
  throw_error();
  return events;
}

std::optional<SavedState> Journal::state(Phase phase, uint64_t last_seq) {
  if (!keeps()) return std::nullopt;
  Statement query(*this, "SELECT seq, state FROM states WHERE phase = ? AND seq <= ? ORDER BY seq DESC LIMIT 1");
  query.text(name_of(phase)).integer(last_seq);
  if (!query.row()) return std::nullopt;
  return SavedState{query.get_integer(0), query.get_text(1)};
}

void Journal::checkpoint() {
  if (!keeps()) return;
  error_.clear();
  sqlite3_busy_timeout(db_, 200);  // a reader may stay for long, and the journal is whole without this
  execute("PRAGMA wal_checkpoint(TRUNCATE)");
  // A database left in WAL mode cannot be opened where its -shm file cannot be made.
  execute("PRAGMA journal_mode=DELETE");
  throw_error();
}

}  // namespace dsat::host
