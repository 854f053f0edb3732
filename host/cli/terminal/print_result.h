// Prints the result of a study that has ended.
//
// Threading: as Console. Errors: none; a summary that cannot be read is left out.
#ifndef DSAT_CLI_TERMINAL_PRINT_RESULT_H_
#define DSAT_CLI_TERMINAL_PRINT_RESULT_H_

#include <string>
#include <vector>

#include "dsat/host/study.h"
#include "terminal/console.h"

namespace dsat::cli {

// The object of --json: {status, reason, best, trials, ...}, with `gain` if one was measured, and `check` of the best.
Json result_json(const host::StudyResult& result);

// Prints for people the summary, the best configuration, the paths of the files, the reason if there is no best, and
// the command that resumes the study. `errors` are the errors that the study logged, such as the last lines of a
// failing script; they follow the line with the reason. `resume_options` are further options for `dsat-host resume
// DIR`, each after a blank.
void print_result(const host::StudyResult& result, const std::vector<std::string>& errors, Console& console,
                  const std::string& resume_options = "");

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_PRINT_RESULT_H_
