// The study's journal: DIR/dsat.db, SQLite. Its schema is documented in docs/journal.md.
//
// Purpose: everything that must survive the plug being pulled. A turn of the study is one transaction: begin, any
//   number of put_ and append_ calls, commit; only then does the study act on it.
// Threading: control thread.
// Errors: dsat::Error, "journal FILE: ...", DSAT_INTERNAL, and DSAT_INVALID_ARGUMENT for a folder that is not what
//   `open` needs. put_ and append_ remember the first failure, write nothing after it, and commit throws it: a turn is
//   written whole or not at all.
#ifndef DSAT_HOST_RECORD_JOURNAL_H_
#define DSAT_HOST_RECORD_JOURNAL_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/strategy.h"
#include "record/trial.h"

struct sqlite3;

namespace dsat::host {

// A change that a released dsat would read wrongly gets the next number. A journal of another number is refused.
inline constexpr int kJournalSchema = 1;

inline constexpr const char* kRepairRemedy =
    "`dsat-host check DIR --repair` goes back to the last whole turn, or put a copy of the file back";

// A row of meta that a repair leaves: a trial that is asked for again is not run if its folder holds its whole result.
inline constexpr const char* kTrustsFolders = "trusts_folders";
// A row of meta: what all runs of trials took.
inline constexpr const char* kSpentDeviceHours = "spent_device_hours";

// What happened to a strategy, and what it asked for in answer.
struct JournalEvent {
  uint64_t seq = 0;
  Phase phase = Phase::searcher;
  StrategyEvent event;
  std::string ops_text;  // as written: compared byte for byte on replay
  std::vector<Op> ops;
};

struct SavedState {
  uint64_t seq = 0;  // of the last event that it contains
  std::string state;
};

class Journal {
 public:
  // damaged: read only, and whatever can be read of it.
  enum class Mode { open, read_only, damaged };
  static std::unique_ptr<Journal> open(const std::filesystem::path& dir, Mode mode);
  // Throws Error: the folder has no journal.
  static void check_is_in(const std::filesystem::path& dir);
  // A new one with what `fill` writes, all of it or, after a crash, none: it appears by a rename. What a start before
  // it left half done goes. For its owner's eyes only, since commands and variables stand in it.
  static std::unique_ptr<Journal> create(const std::filesystem::path& dir,
                                         const std::function<void(Journal&)>& fill = {});
  // Keeps nothing: every write succeeds, every read is empty.
  static std::unique_ptr<Journal> none() { return std::unique_ptr<Journal>(new Journal); }
  // The same in place of the one that is there.
  static void replace(const std::filesystem::path& dir, const std::function<void(Journal&)>& fill);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  bool keeps() const { return db_ != nullptr; }
  // Was the file deleted or replaced since it was opened? Its writes go nowhere then, and commit fails.
  bool is_lost() const;
  std::string lost_text() const;
  const std::filesystem::path& file() const { return file_; }

  // Asked now and then while another program's lock keeps a turn from being written; false: give up. Without one the
  // journal waits for kUsualWait.
  static constexpr std::chrono::milliseconds kUsualWait{5000};
  std::function<bool(std::chrono::milliseconds waited)> on_busy;

  void begin();
  void commit();
  void rollback();  // as if the turn had not begun

  void put_meta(const std::string& key, const Json& value);
  void put_trial(const Trial& trial);
  void remove_trials_from(uint64_t id);
  uint64_t append_event(Phase phase, const StrategyEvent& event, const std::vector<Op>& ops);
  uint64_t next_event() const { return next_seq_; }  // the number that the next one gets
  void remove_events_from(uint64_t seq);
  void put_state(Phase phase, uint64_t seq, const std::string& state);
  void remove_state(Phase phase, uint64_t seq);
  void remove_states(Phase phase);

  // From here on every read sees the journal as it is now, whatever its host writes meanwhile.
  void hold_snapshot() { execute("BEGIN"); }

  // nullopt: there is no such row or, to one who only looks, none that can be read.
  std::optional<Json> meta(const std::string& key);
  std::vector<Trial> trials();
  std::vector<JournalEvent> events();
  std::optional<Phase> last_phase();  // of the last event
  // The latest state that contains no event after `last_seq`.
  std::optional<SavedState> state(Phase phase, uint64_t last_seq);

  // All rows that can be read, and a line for each that cannot.
  struct Salvaged {
    std::vector<Trial> trials;
    std::vector<JournalEvent> events;
    std::map<std::string, Json> meta;
    std::vector<std::string> losses;
  };
  Salvaged salvage();
  // What SQLite finds wrong with the file's own structure; empty: nothing.
  std::string structural_damage();

  // Folds the write-ahead log into the one file, which read-only media can then serve. False: another program reads the
  // journal, so that its log stays beside it; nothing is lost.
  bool checkpoint();

 private:
  class Statement;
  Journal() = default;
  void open_database(const std::string& name, int flags);
  static void write_new(const std::filesystem::path& file, const std::function<void(Journal&)>& fill);
  static void remove_logs(const std::filesystem::path& dir, const char* file);
  void set_up(Mode mode);
  bool lacks_writable_folder() const;  // the last call failed, for SQLite could not make or write a file beside it
  void check_schema(Mode mode);
  int wait_for_lock(int tries);
  static Trial trial_of(const Statement& row);
  static JournalEvent event_of(const Statement& row);
  void execute(const std::string& sql);
  void fail(const std::string& doing);
  void throw_error() const;

  std::filesystem::path file_;
  sqlite3* db_ = nullptr;  // nullptr: keeps nothing
  std::string error_;      // the first since begin; empty: none
  uint64_t next_seq_ = 0;
  uint64_t seq_before_turn_ = 0;
  bool in_turn_ = false;
  bool is_strict_ = false;  // a row that cannot be read is no row that is absent
  std::chrono::steady_clock::time_point waits_since_{};
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_JOURNAL_H_
