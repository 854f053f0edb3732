// What the best configuration changes in the user's own, as lines for people.
//
// Threading: a pure function. Errors: none.
#ifndef DSAT_CLI_TERMINAL_CHANGES_H_
#define DSAT_CLI_TERMINAL_CHANGES_H_

#include <string>
#include <vector>

#include "dsat/host/facts.h"

namespace dsat::cli {

// A heading, one line for each key ("zero_optimization.stage  1 -> 2"), and a note if the global batch differs. Empty:
// there is no best configuration.
std::vector<std::string> change_lines(const host::StudyFacts& facts);

// ", on 8 devices in place of 2"; empty if both configurations ran on the same number of devices.
std::string devices_note(const host::StudyFacts& facts);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_CHANGES_H_
