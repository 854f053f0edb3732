// What dsat-host prints once a study has ended.
//
// Threading: as Console. Errors: none; a summary that cannot be read is left out.
#ifndef DSAT_CLI_TERMINAL_PRINT_RESULT_H_
#define DSAT_CLI_TERMINAL_PRINT_RESULT_H_

#include <string>
#include <vector>

#include "dsat/host/study.h"
#include "terminal/console.h"

namespace dsat::cli {

// The object of --json: {status, reason, best, trials}, and gain where one was measured.
Json result_json(const host::StudyResult& result);

// For people: the summary, the best configuration, where things lie; why there is none; how to go on, also after a
// failure. `errors` are what the study logged as such, a failing script's last lines above all: they follow the one
// line that says what is wrong.
// `resume_options`: what `dsat-host resume DIR` is to be given too, each after a blank.
void print_result(const host::StudyResult& result, const std::vector<std::string>& errors, Console& console,
                  const std::string& resume_options = "");

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_PRINT_RESULT_H_
