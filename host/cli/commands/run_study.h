// Runs a study in the foreground: signals, progress, the report, the full training, the exit status.
//
// Threading: called on the main thread, one study at a time. Errors: printed, and returned as the status.
#ifndef DSAT_CLI_COMMANDS_RUN_STUDY_H_
#define DSAT_CLI_COMMANDS_RUN_STUDY_H_

#include <optional>
#include <string>
#include <vector>

#include "dsat/cli/values.h"
#include "dsat/host/study.h"
#include "terminal/console.h"
#include "terminal/exit_status.h"
#include "terminal/progress.h"
#include "terminal/result_writer.h"

namespace dsat::cli {

struct RunSettings {
  bool quiet = false;
  bool verbose = false;
  bool resumed = false;
  bool trust_folder = false;         // as it was given
  bool run_full_experiment = false;  // train with the best configuration in the end
  bool the_caller_trains = false;    // run_study does not train
  int max_trials = 0;                // as given; 0: take the study's setting
  std::optional<int> events;         // the descriptor of --events
  std::vector<std::string> notices;  // printed first, unless quiet
};

// The settings that the command line gives. Throws if the events cannot be written.
RunSettings run_settings(const cli_kit::Values& values);

// The options for `dsat-host resume DIR` that these settings need, each after a blank.
std::string resume_options_of(const RunSettings& settings);

// The settings of the progress display. `study`: Study::settings(), with the new limits of a resumed study.
ProgressSettings progress_settings(const Json& study, const RunSettings& settings);

// `writers` watch the study, finish before the report, and add the places of their results to it. The caller owns them.
ExitCode run_study(host::Study& study, const RunSettings& settings, Console& console,
                   const std::vector<ResultWriter*>& writers = {});

}  // namespace dsat::cli

#endif  // DSAT_CLI_COMMANDS_RUN_STUDY_H_
