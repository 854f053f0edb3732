// The table of texts by which tools report that memory ran out, that a port is taken or that a process was killed, and
// of texts that only look like it. LineMeaning is what such a text means.
//
// To add a text, add a row to failure_patterns.cc; docs/trial.md describes the columns. Threading: constant data.
#ifndef DSAT_HOST_OUTPUTS_FAILURE_PATTERNS_H_
#define DSAT_HOST_OUTPUTS_FAILURE_PATTERNS_H_

#include <vector>

namespace dsat::host {

enum class LineMeaning {
  nothing,         // looks like a shortage of memory but is none
  device_memory,   // out of memory on the device
  host_memory,     // out of memory on the machine
  pinned_memory,   // out of the machine's memory that devices read directly: it does not grow with the batch
  address_in_use,  // another program has the rendezvous port
  killed,          // a process was ended by SIGKILL
  peer_lost,       // this rank failed because another rank had failed
  launcher,        // the launcher wrote the line, not the script
  remark,          // libraries print the line at any end, so it is no cause
  epilogue,        // begin of the launcher's list of the ranks that died
};

// The streams in which a row is looked for.
enum class Where {
  anywhere,
  not_stdout,  // on standard output a script may print such text as data
  not_stderr,  // the row describes data, which no script prints on standard error
};

struct FailurePattern {
  LineMeaning meaning;
  Where where;
  const char* needle;  // text that the line must contain; tested first because it is fast
  const char* regex;   // RE2 pattern for the line without its prefix; nullptr: the needle is enough
  const char* source;  // the tool that writes the text
};

// A line has the meanings of all rows that match it, but of the first four only that of the first such row.
const std::vector<FailurePattern>& failure_patterns();

// Regular expressions for what launchers and loggers write before a line: a rank, a time, a level. All of them are
// removed from the front of a line before a row's regex is tried.
const std::vector<const char*>& line_prefixes();

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_FAILURE_PATTERNS_H_
