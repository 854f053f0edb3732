// Finds the meaning of each line of a log, by the table of failure_patterns.h and by the user's own patterns
// (--oom-pattern).
//
// Prefixes of launchers and loggers are ignored, and so is the source code in a traceback. RE2 takes linear time for
// any pattern, so a log is read in time linear in its length.
// Threading: immutable once made. Errors: the constructor throws dsat::Error, "--oom-pattern ...".
#ifndef DSAT_HOST_OUTPUTS_LOG_LINES_H_
#define DSAT_HOST_OUTPUTS_LOG_LINES_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "outputs/failure_patterns.h"

namespace re2 {
class RE2;
}

namespace dsat::host {

// The stream or streams of a process that a log holds.
enum class LogStream { standard_output, standard_error, both };

// The meanings of one line.
class Meanings {
 public:
  void add(LineMeaning meaning) { bits_ |= bit(meaning); }
  bool has(LineMeaning meaning) const { return (bits_ & bit(meaning)) != 0; }
  bool reports_out_of_memory() const {
    return has(LineMeaning::device_memory) || has(LineMeaning::host_memory) || has(LineMeaning::pinned_memory);
  }
  // Whether a row has decided what the line says about memory.
  bool is_about_memory() const { return has(LineMeaning::nothing) || reports_out_of_memory(); }

 private:
  static unsigned bit(LineMeaning meaning) { return 1u << static_cast<unsigned>(meaning); }
  unsigned bits_ = 0;
};

class LineReader {
 public:
  // `oom_patterns`: regular expressions in RE2's syntax; a line that matches one reports a shortage of device memory.
  explicit LineReader(const std::vector<std::string>& oom_patterns = {});

  // Returns the meanings of each line. `lines` are printable and in the log's order.
  std::vector<Meanings> read(const std::vector<std::string>& lines, LogStream stream) const;

 private:
  bool fits_own_pattern(std::string_view line) const;

  std::vector<std::shared_ptr<const re2::RE2>> own_;
};

// A pattern whose one group is a number. Throws dsat::Error, "OPTION ...".
std::shared_ptr<const re2::RE2> compiled_number_pattern(const char* option, const std::string& pattern);

// Removes a host's name, "worker-1: ", from the front of each line. Lines that are empty afterwards are removed.
void take_off_hosts(const std::vector<std::string>& hosts, std::vector<std::string>& lines);

// Returns the line without what a launcher or a logger wrote before it.
std::string_view without_prefixes(std::string_view line);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_LOG_LINES_H_
