// Joins the observers of a study, runs the study under the signal handlers, and reports in a fixed order. The object of
// --json comes last and is alone on standard output.
#include "commands/run_study.h"

#include <fmt/format.h>

#include "commands/current_report.h"
#include "commands/full_experiment.h"
#include "commands/report.h"
#include "dsat/base/shell.h"
#include "dsat/host/metric.h"
#include "dsat/host/rescue.h"
#include "events/event_stream.h"
#include "terminal/print_result.h"
#include "terminal/signals.h"

namespace dsat::cli {

RunSettings run_settings(const cli_kit::Values& values) {
  RunSettings settings;
  settings.quiet = values.given("quiet");
  settings.verbose = values.given("verbose");
  settings.run_full_experiment = values.given("run-full-experiment");
  settings.trust_folder = values.given("trust-folder");
  settings.events = values.small_integer("events");
  if (settings.events) check_event_descriptor(*settings.events);
  return settings;
}

ProgressSettings progress_settings(const Json& known, const RunSettings& settings) {
  ProgressSettings progress;
  progress.quiet = settings.quiet;
  progress.verbose = settings.verbose;
  progress.max_trials = settings.max_trials;
  if (const auto it = known.find("metric"); it != known.end() && it->is_string()) progress.metric = *it;
  if (const auto info = host::metric_info(progress.metric); info.ok()) progress.maximise = info->maximise;
  if (const auto it = known.find("max_trials");
      settings.max_trials == 0 && it != known.end() && it->is_number_integer()) {
    progress.max_trials = *it;
  }
  // The time budget of a resumed study begins again.
  if (const auto it = known.find("time_budget_ms"); it != known.end() && it->is_number()) {
    progress.time_budget = std::chrono::milliseconds(it->get<int64_t>());
  }
  return progress;
}

std::string resume_options_of(const RunSettings& settings) {
  return std::string(settings.run_full_experiment ? " --run-full-experiment" : "") +
         (settings.trust_folder ? " --trust-folder" : "");
}

namespace {

// Passes every event to several observers, in the order in which they were added.
class Observers final : public host::Observer {
 public:
  void add(host::Observer& observer) { all_.push_back(&observer); }
  void on_log(Severity severity, std::string_view message) override {
    for (host::Observer* one : all_) one->on_log(severity, message);
  }
  void on_trial_submitted(const host::TrialRecord& trial) override {
    for (host::Observer* one : all_) one->on_trial_submitted(trial);
  }
  void on_trial_started(const host::TrialRecord& trial) override {
    for (host::Observer* one : all_) one->on_trial_started(trial);
  }
  void on_trial_ended(const host::TrialRecord& trial) override {
    for (host::Observer* one : all_) one->on_trial_ended(trial);
  }
  void on_profile(const Json& profile) override {
    for (host::Observer* one : all_) one->on_profile(profile);
  }
  void on_best(const host::BestRecord& best) override {
    for (host::Observer* one : all_) one->on_best(best);
  }
  void on_closing() override {
    for (host::Observer* one : all_) one->on_closing();
  }

 private:
  std::vector<host::Observer*> all_;
};

// A trial may have written over the journal, and nobody would know before the study is needed again.
void look_for_damage(const std::filesystem::path& dir, Console& console) {
  if (dir.empty()) return;
  const auto report = host::check_study(dir);
  if (!report.ok() || report->sound()) return;  // without a journal, the page's error says so
  console.error(fmt::format("the journal is damaged: {}; `dsat-host check {} --repair` mends it",
                            report->findings.front(), shell_quote(dir.string())));
}

}  // namespace

ExitCode run_study(host::Study& study, const RunSettings& settings, Console& console,
                   const std::vector<ResultWriter*>& writers) {
  host::StudyResult result;
  std::vector<std::string> errors;
  std::optional<EventStream> events;
  if (settings.events) events.emplace(*settings.events, study);
  const std::string resume_options = resume_options_of(settings);
  if (!settings.quiet) {
    for (const std::string& notice : settings.notices) console.line(notice);
  }
  {
    const StudyWatch watch(study, resume_options);
    LiveProgress progress(console, progress_settings(study.settings(), settings));
    if (settings.resumed) {
      if (const auto facts = host::read_study_facts(study.dir()); facts.ok()) {
        progress.count_earlier(facts->record);
        progress.take_own(facts.value());
      }
    }
    Observers observers;
    observers.add(progress);
    CurrentReport current(study.dir(), page_writer([&](const host::StudyFacts& facts) { progress.take_own(facts); }));
    observers.add(current);
    if (events) observers.add(*events);
    for (ResultWriter* writer : writers) observers.add(*writer);
    result = study.run(observers);
    errors = progress.errors();
  }
  for (ResultWriter* writer : writers) writer->finish();
  print_result(result, errors, console, resume_options);
  look_for_damage(result.dir, console);
  write_page(result.dir, console);
  if (events) events->result(result_json(result));
  for (const ResultWriter* writer : writers) console.line(writer->place());
  ExitCode status = exit_status(result.status);
  const bool trains = settings.run_full_experiment && !settings.the_caller_trains;
  if (status == kBestFound && trains) {
    status = run_full_experiment(result.dir, study.settings().value("cwd", std::string()), console);
  }
  if (console.json()) console.print_json(result_json(result));
  return status;
}

}  // namespace dsat::cli
