// What a line of a trial's output means: one table of the texts by which tools report that memory ran out, that a port
// is taken, that a process was killed; and of the texts that only look like one of those.
//
// To add a text, add a row to failure_patterns.cc; docs/trial.md describes the columns. Threading: constant data.
#ifndef DSAT_HOST_OUTPUTS_FAILURE_PATTERNS_H_
#define DSAT_HOST_OUTPUTS_FAILURE_PATTERNS_H_

#include <array>
#include <string_view>
#include <vector>

namespace dsat::host {

enum class LineMeaning {
  nothing,         // it looks like a shortage of memory and is none: outweighs the next two
  device_memory,   // out of memory on the device
  host_memory,     // out of memory on the machine
  address_in_use,  // the rendezvous port is another program's
  killed,          // a process was ended by SIGKILL
  peer_lost,       // this rank failed because another one had
  launcher,        // the launcher speaks, not the script
  remark,          // a library's words at any end: they tell no cause
  epilogue,        // the launcher's account of the ranks that died begins
};

// Which output a row is looked for in.
enum class Where {
  anywhere,
  not_stdout,  // a script may print such words on standard output as data
  not_stderr,  // the row describes such data, and no script prints data on standard error
};

struct FailurePattern {
  LineMeaning meaning;
  Where where;
  const char* needle;  // a part of the text that must be there: the quick test
  const char* regex;   // what must be around it, in the line without its prefix (RE2's syntax); nullptr: nothing
  const char* source;  // who writes it
};

// A line has the meanings of all rows that fit.
const std::vector<FailurePattern>& failure_patterns();

// What launchers and loggers write before a line, as regular expressions: a rank, a time, a level. They are taken off
// the front, one after another, before a row's regex is tried.
const std::vector<const char*>& line_prefixes();

}  // namespace dsat::host

#endif  // DSAT_HOST_OUTPUTS_FAILURE_PATTERNS_H_
