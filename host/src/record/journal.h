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

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/strategy.h"
#include "record/trial.h"

struct sqlite3;

namespace dsat::host {

inline constexpr int kJournalSchema = 1;

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
  enum class Mode { create, open, read_only };
  static std::unique_ptr<Journal> open(const std::filesystem::path& dir, Mode mode);
  // Keeps nothing: every write succeeds, every read is empty.
  static std::unique_ptr<Journal> none() { return std::unique_ptr<Journal>(new Journal); }
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  bool keeps() const { return db_ != nullptr; }

  void begin();
  void commit();
  void rollback();  // as if the turn had not begun

  void put_meta(const std::string& key, const Json& value);
  void put_trial(const Trial& trial);
  void remove_trials_from(uint64_t id);
  uint64_t append_event(Phase phase, const StrategyEvent& event, const std::vector<Op>& ops);
  void remove_events_from(uint64_t seq);
  void put_state(Phase phase, uint64_t seq, const std::string& state);
  void remove_state(Phase phase, uint64_t seq);
  void remove_states(Phase phase);

  // From here on every read sees the journal as it is now, whatever its host writes meanwhile.
  void hold_snapshot() { execute("BEGIN"); }

  std::optional<Json> meta(const std::string& key);
  std::vector<Trial> trials();
  std::vector<JournalEvent> events();
  // The latest state that contains no event after `last_seq`.
  std::optional<SavedState> state(Phase phase, uint64_t last_seq);

  // JSON as the journal writes it; bytes that are no UTF-8 become U+FFFD.
  static std::string text_of(const Json& json);

  // Folds the write-ahead log into the one file, which read-only media can then serve.
  void checkpoint();

 private:
  class Statement;
  Journal() = default;
  void open_database(const std::string& name, int flags);
  void prepare_schema(Mode mode);
  void execute(const std::string& sql);
  void fail(const std::string& doing);
  void throw_error() const;
  Error damaged(const char* what, size_t row, const std::exception& error) const;

  std::filesystem::path file_;
  sqlite3* db_ = nullptr;  // nullptr: keeps nothing
  std::string error_;      // the first since begin; empty: none
  uint64_t next_seq_ = 0;
  uint64_t seq_before_turn_ = 0;
  bool in_turn_ = false;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_JOURNAL_H_
