#include "run_study.h"

#include "full_experiment.h"
#include "progress.h"
#include "report.h"
#include "signals.h"

namespace dsat::cli {
namespace {

ProgressSettings progress_settings(const host::Study& study, const RunSettings& settings) {
  ProgressSettings progress;
  progress.quiet = settings.quiet;
  progress.time_budget = settings.time_budget;
  progress.max_trials = settings.max_trials;
  const Json& known = study.settings();
  if (const auto it = known.find("metric"); it != known.end() && it->is_string()) progress.metric = *it;
  if (const auto it = known.find("max_trials"); settings.max_trials == 0 && it != known.end() && it->is_number()) {
    progress.max_trials = *it;
  }
  return progress;
}

}  // namespace

ExitStatus run_study(host::Study& study, const RunSettings& settings, Console& console) {
  host::StudyResult result;
  std::vector<std::string> errors;
  {
    const StopOnSignal stop(study);
    Progress progress(console, progress_settings(study, settings));
    if (settings.resumed) {
      if (const auto record = host::read_study(study.dir()); record.ok()) progress.count_earlier(record.value());
    }
    result = study.run(progress);
    errors = progress.errors();
  }
  report(result, errors, console);
  ExitStatus status = exit_status(result.status);
  if (status == kBestFound && settings.run_full_experiment) status = run_full_experiment(result.dir, console);
  if (console.json()) console.print_json(result_json(result));
  return status;
}

}  // namespace dsat::cli
