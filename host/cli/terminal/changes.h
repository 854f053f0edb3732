// What the best configuration changes in the user's own, as lines for people.
//
// Threading: a pure function. Errors: none.
#ifndef DSAT_CLI_TERMINAL_CHANGES_H_
#define DSAT_CLI_TERMINAL_CHANGES_H_

#include <string>
#include <vector>

#include "dsat/host/facts.h"

namespace dsat::cli {

// A heading, a line a key ("zero_optimization.stage  1 -> 2"), and a note where the global batch is another one; empty:
// there is no best configuration.
std::vector<std::string> change_lines(const host::StudyFacts& facts);

// ", on 8 devices in place of 2"; empty where the best and the user's own configuration ran on as many.
std::string devices_note(const host::StudyFacts& facts);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_CHANGES_H_
