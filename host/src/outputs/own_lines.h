// The lines of a log that are the script's own, and the one of them that says what went wrong.
//
// Purpose: two failures are alike if these lines are, so that line has no rank, no time and no progress in it.
// Threading: pure. Errors: none.
#ifndef DSAT_HOST_OUTPUTS_OWN_LINES_H_
#define DSAT_HOST_OUTPUTS_OWN_LINES_H_

#include <string>
#include <vector>

#include "outputs/log_lines.h"

namespace dsat::host {

struct OwnLines {
  // Those before the launcher's account of the ranks that died, without what the launcher says at any time.
  std::vector<std::string> lines;
  // What went wrong, as far as one line says it: the exception that ended the last traceback, or what went wrong after
  // it; without a traceback the last line that is no library's remark. An exception that Python ignored is none.
  std::string last;
  bool tells_the_cause = false;       // there is an exception's line
  bool is_after_a_traceback = false;  // `last` ended a traceback, or went wrong after it
  bool ends_with_it = false;          // nothing but remarks follows `last`
};

// `meanings`: of each of `lines`.
OwnLines own_lines_of(const std::vector<std::string>& lines, const std::vector<Meanings>& meanings);

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_OWN_LINES_H_
