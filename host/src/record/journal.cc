// Uses prepared statements. The first failure is kept until the turn's commit, so that nothing is written after it.
#include "record/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

#include "base/fault_point.h"
#include "dsat/base/files.h"
#include "dsat/base/owner.h"
#include "dsat/config/json.h"
#include "record/journal_statement.h"
#include "record/journal_words.h"
#include "record/row_digest.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "dsat.db";
constexpr const char* kNewFile = "dsat.db.new";
constexpr const char* kLogEndings[] = {"-wal", "-shm", "-journal"};
constexpr const char* kLost =
    "was deleted or replaced while the study ran; the best configuration is in best_ds_config.json, if its folder "
    "still exists";

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

// SQLite opens the journal's files with this. A pipe in their place would hold it for ever, and where it makes a file
// there may be a link of either kind to another file, which it would write to, even to read the journal.
int open_without_waiting(const char* path, int flags, int mode) {
  const bool is_made = (flags & O_CREAT) != 0;
  const int fd = ::open(path, flags | (is_made ? O_NOFOLLOW : 0) | O_NONBLOCK | O_CLOEXEC, mode);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) return fd;
  if (!S_ISFIFO(info.st_mode) && !(is_made && info.st_nlink > 1)) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

void let_sqlite_open_without_waiting() {
  static const bool is_set = [] {
    sqlite3_vfs* vfs = sqlite3_vfs_find(nullptr);
    if (vfs != nullptr && vfs->iVersion >= 3 && vfs->xSetSystemCall != nullptr) {
      vfs->xSetSystemCall(vfs, "open", reinterpret_cast<sqlite3_syscall_ptr>(&open_without_waiting));
    }
    return true;
  }();
  (void)is_set;
}

// Whoever writes to a journal, or runs what it names, trusts who made it. A reader need not.
void refuse_journal_of_others(const fs::path& file) {
  const std::string why = why_others_made(file);
  if (why.empty()) return;
  throw Error(fmt::format("{}: {}: if you trust what it runs, make a copy of it that is your own", file.string(), why));
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

std::unique_ptr<Journal> Journal::create(const fs::path& dir, const std::function<void(Journal&)>& fill) {
  std::error_code error;
  if (fs::exists(dir / kFile, error)) {
    throw Error(
        fmt::format("output directory {}: holds another study; give a new --output-dir, or continue that study "
                    "with `dsat-host resume`",
                    dir.string()));
  }
  replace(dir, fill);
  return open(dir, Mode::open);
}

// SQLite would take a log beside a new file for this file's log.
void Journal::remove_logs(const fs::path& dir, const char* file) {
  std::error_code error;
  for (const char* ending : kLogEndings) fs::remove(dir / (std::string(file) + ending), error);
}

void Journal::write_new(const fs::path& file, const std::function<void(Journal&)>& fill) {
  NewFile(file, {}, Access::owner).close();
  Journal half;
  half.file_ = file;
  half.open_database(file.string(), SQLITE_OPEN_READWRITE);
  half.execute("PRAGMA journal_mode=MEMORY");
  half.execute("PRAGMA synchronous=FULL");
  half.begin();
  half.execute(kSchema);
  half.put_meta("schema", kJournalSchema);
  if (fill) fill(half);
  half.commit();
}

void Journal::replace(const fs::path& dir, const std::function<void(Journal&)>& fill) {
  std::error_code error;
  fs::remove(dir / kNewFile, error);
  remove_logs(dir, kNewFile);
  write_new(dir / kNewFile, fill);
  fault_point("journal.written");
  remove_logs(dir, kFile);
  fs::rename(dir / kNewFile, dir / kFile, error);
  if (error) throw Error(DSAT_INTERNAL, fmt::format("cannot write {}: {}", (dir / kFile).string(), error.message()));
  fault_point("journal.renamed");
  sync_folder(dir);
}

void Journal::check_is_in(const fs::path& dir) {
  std::error_code error;
  const fs::file_status status = fs::status(dir / kFile, error);
  if (fs::exists(status) && !fs::is_fifo(status)) return;
  if (fs::is_fifo(status)) {
    throw Error(
        fmt::format("{}: is a pipe and no journal: look who put it there, and remove it", (dir / kFile).string()));
  }
  throw Error(
      fmt::format("{}: holds no study (no {}); give the folder that a study was written to", dir.string(), kFile));
}

std::unique_ptr<Journal> Journal::open(const fs::path& dir, Mode mode) {
  check_is_in(dir);
  std::unique_ptr<Journal> journal(new Journal);
  journal->file_ = dir / kFile;
  if (mode == Mode::open) refuse_journal_of_others(journal->file_);
  const int flags = mode == Mode::open ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  try {
    journal->open_database(journal->file_, flags);
    journal->set_up(mode);
    journal->check_schema(mode);
    if (journal->lacks_writable_folder()) journal->throw_error();  // for a damaged journal this is no error yet
    journal->is_strict_ = mode == Mode::open;
  } catch (const Error&) {
    std::error_code error;
    const bool has_log = fs::file_size(dir / (std::string(kFile) + "-wal"), error) > 0 && !error;
    if (mode == Mode::open || (has_log && !journal->lacks_writable_folder())) throw;
    if (has_log) {
      throw Error(DSAT_INTERNAL, fmt::format("{}: its log (-wal) can be read only in a writable folder: copy the "
                                             "folder to such a place",
                                             journal->file_.string()));
    }
    // Read-only media can hold no lock or log file, so the file is opened as immutable.
    sqlite3_close(journal->db_);
    journal->error_.clear();
    journal->open_database("file:" + uri_escaped(journal->file_.string()) + "?immutable=1", flags | SQLITE_OPEN_URI);
    journal->check_schema(mode);
  }
  return journal;
}

bool Journal::lacks_writable_folder() const {
  const int code = sqlite3_errcode(db_) & 0xff;
  return code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
}

void Journal::open_database(const std::string& name, int flags) {
  let_sqlite_open_without_waiting();
  const int status = sqlite3_open_v2(name.c_str(), &db_, flags, nullptr);
  if (status == SQLITE_OK) return;
  throw Error(DSAT_INTERNAL, fmt::format("{}: {}", file_.string(), sqlite3_errstr(status)));
}

Journal::~Journal() { sqlite3_close(db_); }

void Journal::set_up(Mode mode) {
  sqlite3_busy_handler(
      db_, [](void* self, int tries) { return static_cast<Journal*>(self)->wait_for_lock(tries); }, this);
  if (mode != Mode::open) return;
  execute(on_local_file_system(file_.parent_path()) ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE");
  execute("PRAGMA synchronous=FULL");
}

void Journal::check_schema(Mode mode) {
  const bool may_be_damaged = mode == Mode::damaged;
  const auto no_journal = [this] {
    return Error(file_.string() +
                 ": is no journal of a study; if it was one, `dsat-host check DIR --repair` may repair it");
  };
  {
    Statement tables(*this, "SELECT 1 FROM sqlite_master WHERE name = 'meta'");
    const bool ours = tables.row();
    if (!ours && !may_be_damaged && (error_.empty() || sqlite3_errcode(db_) == SQLITE_NOTADB)) throw no_journal();
  }
  const std::optional<Json> schema = meta("schema");
  const bool is_schema = schema && schema->is_number_integer() && *schema >= 1;
  if (may_be_damaged && !is_schema) return;
  if (!may_be_damaged) throw_error();
  if (!schema) throw no_journal();
  if (!is_schema) {
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: its schema is not a version number; {}", file_.string(), kRepairRemedy));
  }
  if (*schema != kJournalSchema) {
    throw Error(fmt::format("{}: journal schema {}, this dsat reads {}; use the version that wrote it", file_.string(),
                            schema->dump(), kJournalSchema));
  }
  if (may_be_damaged) return;  // its rows may not be readable
  Statement last(*this, "SELECT max(seq) + 1 FROM events");
  if (last.row()) next_seq_ = last.get_integer(0);
  throw_error();
}

// SQLite calls this after every failed attempt. Returns 0 to give up.
int Journal::wait_for_lock(int tries) {
  const auto now = std::chrono::steady_clock::now();
  if (tries == 0) waits_since_ = now;
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - waits_since_);
  if (on_busy ? !on_busy(waited) : waited >= kUsualWait) return 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(tries < 20 ? 5 : 50));
  return 1;
}

bool Journal::is_lost() const {
  int moved = 0;
  return keeps() && sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

std::string Journal::lost_text() const { return fmt::format("journal {}: {}", file_.string(), kLost); }

std::string Journal::structural_damage() {
  error_.clear();
  std::string found;
  {
    Statement check(*this, "PRAGMA quick_check(1)");
    while (check.row()) {
      if (check.get_text(0) != "ok") found = check.get_text(0);
    }
  }
  if (found.empty() && !error_.empty()) found = sqlite3_errmsg(db_);
  error_.clear();
  return found.substr(0, found.find('\n'));
}

void Journal::fail(const std::string& doing) {
  if (!error_.empty()) return;
  const int code = sqlite3_errcode(db_) & 0xff;
  const char* remedy = code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ? kRepairRemedy
                       : code == SQLITE_BUSY || code == SQLITE_LOCKED
                           ? "end the program that holds it, then `dsat-host resume`"
                       : file_.filename() == kNewFile ? "free space or repair the file system; nothing was started"
                                                      : "free space or repair the file system, then `dsat-host resume`";
  error_ = fmt::format("journal {}: {}: {}; {}", file_.string(), doing, sqlite3_errmsg(db_), remedy);
}

void Journal::throw_error() const {
  if (!error_.empty()) throw Error(DSAT_INTERNAL, error_);
}

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
  if (error_.empty() && is_lost()) error_ = lost_text();
  fault_point("commit.before");
  execute("COMMIT");
  fault_point("commit.after");
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
  Statement(*this, "INSERT OR REPLACE INTO meta VALUES(?, ?)")
      .text(key)
      .text(with_digest(config::text_of(value), key))
      .run("write");
}

void Journal::put_trial(const Trial& trial) {
  if (!keeps()) return;
  const TrialRecord& r = trial.record;
  const std::string config = config::text_of(r.config), metrics = config::text_of(r.metrics);
  Statement(*this, "INSERT OR REPLACE INTO trials VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .integer(r.id)
      .text(name_of(trial.phase))
      .text(kStates[static_cast<size_t>(trial.state)])
      .text(to_string(r.kind))
      .integer(r.parent)
      .integer(r.duplicate_of)
      .integer(uint64_t{trial.model_info})
      .text(config)
      .text(with_digest(config::text_of(r.overrides), config + trial.identity + metrics))
      .text(r.note)
      .text(trial.identity)
      .text(r.outcome ? to_string(*r.outcome) : "")
      .text(r.reason)
      .text(metrics)
      .integer(r.peak_bytes)
      .text(config::text_of(r.slots))
      .integer(uint64_t{r.attempt})
      .text(r.submitted_at)
      .text(r.started_at)
      .text(r.ended_at)
      .text(trial.end ? config::text_of(end_to_json(trial)) : "")
      .run("write a trial");
}

void Journal::remove_trials_from(uint64_t id) {
  if (!keeps()) return;
  Statement(*this, "DELETE FROM trials WHERE id >= ?").integer(id).run("remove trials");
}

uint64_t Journal::append_event(Phase phase, const StrategyEvent& event, const std::vector<Op>& ops) {
  const uint64_t seq = next_seq_++;
  if (!keeps()) return seq;
  const std::string answer = config::text_of(to_json(ops));
  Statement(*this, "INSERT INTO events VALUES(?,?,?,?)")
      .integer(seq)
      .text(name_of(phase))
      .text(with_digest(config::text_of(to_json(event)), answer))
      .text(answer)
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

bool Journal::checkpoint() {
  if (!keeps()) return true;
  error_.clear();
  sqlite3_busy_timeout(db_, 200);  // a reader may stay long, and the journal is complete without this
  execute("PRAGMA wal_checkpoint(TRUNCATE)");
  // A database in WAL mode cannot be opened if its -shm file cannot be made.
  execute("PRAGMA journal_mode=DELETE");
  const int code = sqlite3_errcode(db_) & 0xff;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) return false;
  throw_error();
  return true;
}

}  // namespace dsat::host
