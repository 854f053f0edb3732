// A prepared statement of the journal, with its values bound in order.
// Threading: control thread. Ownership: the journal outlives it. Errors: the journal keeps the first failure; an
// impossible value in a column throws dsat::Error, DSAT_DATA_LOSS.
#ifndef DSAT_HOST_RECORD_JOURNAL_STATEMENT_H_
#define DSAT_HOST_RECORD_JOURNAL_STATEMENT_H_

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>

#include "record/journal.h"

namespace dsat::host {

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
  // After a failure SQLite may have rolled back, and each later statement would be committed alone.
  void run(const char* doing) {
    if (!journal_.error_.empty()) return;
    if (raw_ != nullptr && sqlite3_step(raw_) != SQLITE_DONE) journal_.fail(doing);
  }
  // Returns false at the end, and if reading fails; then the journal has the error.
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
  bool is_null(int column) const { return sqlite3_column_type(raw_, column) == SQLITE_NULL; }
  // Integers in the journal are counts, sizes and ids; all others are damage.
  uint64_t count_at(int column, const char* name, uint64_t most = INT64_MAX) const {
    if (sqlite3_column_type(raw_, column) == SQLITE_INTEGER && get_integer(column) <= most) return get_integer(column);
    throw Error(DSAT_DATA_LOSS, fmt::format("its {} is not a possible number", name));
  }
  std::optional<uint64_t> optional_count_at(int column, const char* name) const {
    return is_null(column) ? std::nullopt : std::optional<uint64_t>(count_at(column, name));
  }

 private:
  Journal& journal_;
  sqlite3_stmt* raw_ = nullptr;
  int bound_ = 0;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_RECORD_JOURNAL_STATEMENT_H_
