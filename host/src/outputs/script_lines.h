// Finds the script's own lines in a log, and the line that says what went wrong.
//
// Two failures are alike if the latter are equal, so that line has no rank, no time and no progress in it.
// Threading: pure. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_SCRIPT_LINES_H_
#define DSAT_HOST_OUTPUTS_SCRIPT_LINES_H_

#include <string>
#include <vector>

#include "outputs/log_lines.h"

namespace dsat::host {

struct ScriptLines {
  // The lines before the launcher's list of the ranks that died, without the launcher's own lines.
  std::vector<std::string> lines;
  // The line that says best what went wrong: the exception that ended the last traceback, or an error after it; without
  // a traceback, the last line that is no library's remark. An exception that Python ignored does not count.
  std::string last;
  bool tells_the_cause = false;       // there is a line with an exception
  bool is_after_a_traceback = false;  // `last` ended a traceback, or is an error after one
  bool ends_with_it = false;          // only remarks follow `last`
};

// `meanings`: the meanings of each line.
ScriptLines script_lines_of(const std::vector<std::string>& lines, const std::vector<Meanings>& meanings);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_SCRIPT_LINES_H_
