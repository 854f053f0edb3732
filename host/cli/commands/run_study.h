// Running a study in the foreground: signals, progress, the report, the exit status.
#ifndef DSAT_CLI_COMMANDS_RUN_STUDY_H_
#define DSAT_CLI_COMMANDS_RUN_STUDY_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "dsat/host/study.h"
#include "terminal/console.h"
#include "terminal/exit_status.h"

namespace dsat::cli {

struct RunSettings {
  bool quiet = false;
  bool resumed = false;
  bool run_full_experiment = false;
  int max_trials = 0;  // as given; 0: as the study's settings say
  std::optional<std::chrono::milliseconds> time_budget;
  std::vector<std::string> notices;  // said first, unless quiet
};

ExitStatus run_study(host::Study& study, const RunSettings& settings, Console& console);

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_RUN_STUDY_H_
