// The study's journal: DIR/dsat.db, SQLite. docs/journal.md documents its schema.
//
// It holds everything that must survive a power loss. A turn of the study is one transaction: begin, any number of put_
// and append_ calls, commit; only after that the study acts on it. Threading: control thread. Errors: dsat::Error,
// "journal FILE: ...", DSAT_INTERNAL, or DSAT_INVALID_ARGUMENT for a folder that `open` cannot use. After the first
// failure, put_ and append_ write nothing, and commit throws it, so a turn is written completely or not at all.
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

// A row of meta: the trials' files leave train_batch_size out, because the script refuses it.
inline constexpr const char* kLeavesOutTrainBatch = "leaves_out_train_batch";
// A row of meta, left by a repair: a trial that is requested again is not run if its folder has the complete result.
inline constexpr const char* kTrustsFolders = "trusts_folders";
// A row of meta: the device hours of all runs.
inline constexpr const char* kSpentDeviceHours = "spent_device_hours";

// An event of a strategy, and the ops in answer to it.
struct JournalEvent {
  uint64_t seq = 0;
  Phase phase = Phase::searcher;
  StrategyEvent event;
  std::string ops_text;  // as written: compared byte for byte on replay
  std::vector<Op> ops;
};

struct SavedState {
  uint64_t seq = 0;  // the last event that the state contains
  std::string state;
};

class Journal {
 public:
  // damaged: read only, for a journal that may be partly unreadable.
  enum class Mode { open, read_only, damaged };
  static std::unique_ptr<Journal> open(const std::filesystem::path& dir, Mode mode);
  // Throws Error: the folder has no journal.
  static void check_is_in(const std::filesystem::path& dir);
  // Makes a new journal with what `fill` writes: completely or, after a crash, not at all, since it appears by a
  // rename. Removes what an interrupted start left. Only the owner may read it, because commands and variables may hold
  // secrets.
  static std::unique_ptr<Journal> create(const std::filesystem::path& dir,
                                         const std::function<void(Journal&)>& fill = {});
  // A journal that keeps nothing: every write succeeds, every read is empty.
  static std::unique_ptr<Journal> none() { return std::unique_ptr<Journal>(new Journal); }
  // Replaces the journal in `dir` by a new one.
  static void replace(const std::filesystem::path& dir, const std::function<void(Journal&)>& fill);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  bool keeps() const { return db_ != nullptr; }
  // Whether the file was deleted or replaced since it was opened. Then writes are lost, and commit fails.
  bool is_lost() const;
  std::string lost_text() const;
  const std::filesystem::path& file() const { return file_; }

  // Called repeatedly while another program's lock delays a turn; returns false to give up. Without it the journal
  // waits for kUsualWait.
  static constexpr std::chrono::milliseconds kUsualWait{5000};
  std::function<bool(std::chrono::milliseconds waited)> on_busy;

  void begin();
  void commit();
  void rollback();  // undoes the turn

  void put_meta(const std::string& key, const Json& value);
  void put_trial(const Trial& trial);
  void remove_trials_from(uint64_t id);
  uint64_t append_event(Phase phase, const StrategyEvent& event, const std::vector<Op>& ops);
  uint64_t next_event() const { return next_seq_; }  // number of the next event
  void remove_events_from(uint64_t seq);
  void put_state(Phase phase, uint64_t seq, const std::string& state);
  void remove_state(Phase phase, uint64_t seq);
  void remove_states(Phase phase);

  // From here on, reads see the journal of this moment, whatever its host writes.
  void hold_snapshot() { execute("BEGIN"); }

  // nullopt: there is no such row or, in a journal opened to read, it cannot be read.
  std::optional<Json> meta(const std::string& key);
  std::vector<Trial> trials();
  std::vector<JournalEvent> events();
  std::optional<Phase> last_phase();  // of the last event
  // Returns the latest state that contains no event after `last_seq`.
  std::optional<SavedState> state(Phase phase, uint64_t last_seq);

  // All readable rows, and a line for each unreadable one.
  struct Salvaged {
    std::vector<Trial> trials;
    std::vector<JournalEvent> events;
    std::map<std::string, Json> meta;
    std::vector<std::string> losses;
  };
  Salvaged salvage();
  // Returns SQLite's errors in the file's structure; empty: none.
  std::string structural_damage();

  // Moves the write-ahead log into the one file, which can then be read on read-only media. Returns false if another
  // program reads the journal; then the log stays beside it, and nothing is lost.
  bool checkpoint();

 private:
  class Statement;
  Journal() = default;
  void open_database(const std::string& name, int flags);
  static void write_new(const std::filesystem::path& file, const std::function<void(Journal&)>& fill);
  static void remove_logs(const std::filesystem::path& dir, const char* file);
  void set_up(Mode mode);
  bool lacks_writable_folder() const;  // SQLite could not make or write a file beside the journal
  void check_schema(Mode mode);
  int wait_for_lock(int tries);
  static Trial trial_of(const Statement& row);
  static JournalEvent event_of(const Statement& row);
  void execute(const std::string& sql);
  void fail(const std::string& doing);
  void throw_error() const;

  std::filesystem::path file_;
  sqlite3* db_ = nullptr;  // nullptr: keeps nothing
  std::string error_;      // the first error since begin; empty: none
  uint64_t next_seq_ = 0;
  uint64_t seq_before_turn_ = 0;
  bool in_turn_ = false;
  bool is_strict_ = false;  // an unreadable row is an error, not an absent row
  std::chrono::steady_clock::time_point waits_since_{};
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_JOURNAL_H_
