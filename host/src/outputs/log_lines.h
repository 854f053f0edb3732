// Reads the lines of a log by the table of failure_patterns.h and by the user's own patterns of an out-of-memory
// message.
//
// Prefixes of launchers and loggers are taken off a line, and a traceback's quoted source has no meaning. RE2 takes
// linear time for any pattern, so that a log costs time by its length alone.
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

// What a log holds: one of a process's streams, or both.
enum class LogStream { standard_output, standard_error, both };

// The meanings of one line.
class Meanings {
 public:
  void add(LineMeaning meaning) { bits_ |= bit(meaning); }
  bool has(LineMeaning meaning) const { return (bits_ & bit(meaning)) != 0; }
  bool reports_out_of_memory() const {
    return !has(LineMeaning::nothing) && (has(LineMeaning::device_memory) || has(LineMeaning::host_memory));
  }

 private:
  static unsigned bit(LineMeaning meaning) { return 1u << static_cast<unsigned>(meaning); }
  unsigned bits_ = 0;
};

class LineReader {
 public:
  // `oom_patterns`: regular expressions in RE2's syntax; a line that one of them fits reports a shortage on the device.
  explicit LineReader(const std::vector<std::string>& oom_patterns = {});

  // The meanings of each of `lines`, which are printable and in the log's order.
  std::vector<Meanings> read(const std::vector<std::string>& lines, LogStream stream) const;

 private:
  bool fits_own_pattern(std::string_view line) const;

  std::vector<std::shared_ptr<const re2::RE2>> own_;
};

// Takes the name of a host off the begin of each line that has one: "worker-1: ". Lines that have nothing else go.
void take_off_hosts(const std::vector<std::string>& hosts, std::vector<std::string>& lines);

// The line without what a launcher or a logger wrote before it.
std::string_view without_prefixes(std::string_view line);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_LOG_LINES_H_
