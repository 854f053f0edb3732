// The experiment form: dsat-host [asha|binary|random|_test] EXPERIMENT.yaml MODEL_DIR [options]. The file gives the
// settings that the command line does not. The study runs in a child process that is restarted if it dies.
#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "commands/commands.h"
#include "commands/full_experiment.h"
#include "commands/host_options.h"
#include "commands/restart_on_crash.h"
#include "commands/run_study.h"
#include "commands/subcommand.h"
#include "determined/apply_experiment.h"
#include "determined/read_experiment.h"
#include "determined/search_runner_config.h"
#include "dsat/error.h"
#include "dsat/host/environment.h"
#include "dsat/host/plugins.h"
#include "options/actions.h"
#include "options/plugin_options.h"
#include "options/preview.h"
#include "options/study_options.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsageText =
    "Usage: dsat-host [asha|binary|random|_test] EXPERIMENT.yaml MODEL_DIR [options]\n"
    "\n"
    "Tunes the experiment of an experiment file for Determined. Trials run in copies of MODEL_DIR.\n"
    "Without a method the default searcher runs. _test runs a few trials, to check the setup.\n"
    "\n"
    "  dsat-host asha deepspeed.yaml .\n"
    "\n";

constexpr const char* kTestSearcher = "random";
constexpr int kTestTrials = 6, kTestProfileTrials = 1;

// The command line before its options are read.
struct ExperimentForm {
  std::string method;  // empty: none given
  OptionSet set;
  Tokens arguments;  // without the method
};

struct Strategies {
  host::PluginInfo searcher, profiler;
  std::string searcher_name, profiler_name;
};

host::PluginInfo find(const std::string& name, host::PluginKind kind, const host::PluginProcesses& processes) {
  auto plugin = host::find_strategy(name, kind, processes);
  if (!plugin.ok()) {
    const bool usage = exit_status(plugin.status()) == kUsage;
    throw Error(usage ? DSAT_INVALID_ARGUMENT : DSAT_INTERNAL, plugin.status().message());
  }
  return std::move(plugin).value();
}

Strategies choose(const ExperimentForm& form, const Preview& wanted) {
  if (!form.method.empty() && wanted.searcher && *wanted.searcher != form.method) {
    throw Error(fmt::format("the method {} and --searcher {} differ: leave the method out if you give --searcher",
                            form.method, *wanted.searcher));
  }
  Strategies chosen;
  const std::string by_method = form.method == "_test" ? kTestSearcher : form.method;
  chosen.searcher_name = !by_method.empty() ? by_method : wanted.searcher.value_or(kDefaultSearcher);
  chosen.profiler_name = wanted.profiler.value_or(host::StudyOptions().profiler.plugin);
  const host::PluginProcesses processes = plugin_processes(Values(form.set, wanted.plugin_processes));
  chosen.searcher = find(chosen.searcher_name, host::PluginKind::searcher, processes);
  chosen.profiler = find(chosen.profiler_name, host::PluginKind::profiler, processes);
  return chosen;
}

ExperimentRequest request_of(const Split& parts, const Values& values) {
  if (parts.rest.size() != 2) {
    const bool swallowed = parts.rest.size() < 2 && values.given("include");
    const std::string have = swallowed               ? " before -i, which takes every word up to the next option"
                             : parts.rest.size() < 2 ? ""
                                                     : fmt::format(", not also {}", parts.rest[2]);
    throw Error(fmt::format(
        "the experiment form takes EXPERIMENT.yaml and MODEL_DIR{}: dsat-host asha deepspeed.yaml . [-i FILE...]",
        have));
  }
  ExperimentRequest request;
  request.file = parts.rest[0];
  std::error_code error;
  const fs::path model = parts.rest[1];
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("model directory {}: {}", model.string(), why));
  };
  if (!fs::exists(model, error)) refuse("no such directory");
  if (!fs::is_directory(model, error)) refuse("is a file, no directory");
  request.model_dir = fs::canonical(model, error);
  if (error) refuse(error.message());
  for (const std::string& include : values.texts("include")) request.includes.emplace_back(include);
  request.slots_per_trial = values.small_integer("slots-per-trial");
  request.environment = host::current_environment();
  return request;
}

host::StudyOptions options_of(const ExperimentForm& form, const Values& values, const ExperimentRequest& request,
                              Console& console) {
  if (values.given("sim") || values.text("runner").value_or("local") == "sim") {
    throw Error("--runner sim runs no experiment: leave one of the two out");
  }
  host::StudyOptions options = study_options(values);
  options.include.clear();  // --include names files in this form
  // The path is relative to the current folder, but the study runs in MODEL_DIR.
  if (!options.hostfile.empty()) options.hostfile = fs::absolute(options.hostfile);
  if (options.ds_config) {
    throw Error(fmt::format("--ds-config: the experiment form takes hyperparameters.deepspeed_config of {}",
                            request.file.string()));
  }
  const Experiment experiment = read_experiment(request);
  apply_experiment(experiment, request, values, options);
  if (form.method == "_test") {
    if (!values.given("max-trials")) options.max_trials = kTestTrials;
    if (!values.given("profile-trials")) options.profile_trials = kTestProfileTrials;
  }
  for (const std::string& notice : experiment.notices) console.line(fmt::format("warning: {}", notice));
  return options;
}

// The study's own check names the option, but the value may come from the file.
std::string in_terms_of_the_file(std::string message, const Values& values, const ExperimentRequest& request) {
  const std::string option = "--slots-per-trial is ";
  if (message.rfind(option, 0) != 0 || values.given("slots-per-trial")) return message;
  return fmt::format("{}: resources.slots_per_trial is {}", request.file.string(), message.substr(option.size()));
}

class ExperimentRun {
 public:
  ExperimentRun(const Values& values, ExperimentRequest request, host::StudyOptions options, Console& console)
      : values_(values),
        request_(std::move(request)),
        options_(std::move(options)),
        console_(console),
        settings_(run_settings(values)) {
    settings_.max_trials = options_.max_trials;
    settings_.the_caller_trains = true;  // once, even if the process that searches dies
  }

  int run(int max_restarts) {
    int status = 0;
    if (max_restarts == 0) {
      status = begin([&](const fs::path& dir) { dir_ = dir; });
    } else {
      const Supervised study{[&](const auto& started) { return begin(started); },
                             [&](const fs::path& dir) { return resume(dir); }, resume_options_of(settings_)};
      status = supervise(study, max_restarts, dir_, console_);
    }
    if (status != kBestFound || !settings_.run_full_experiment) return status;
    return run_full_experiment(dir_, {}, console_);  // its command changes to MODEL_DIR
  }

 private:
  int begin(const std::function<void(const fs::path&)>& started) {
    auto study = host::Study::create(std::move(options_));
    if (!study.ok()) {
      console_.error(in_terms_of_the_file(study.status().message(), values_, request_));
      return exit_status(study.status());
    }
    started(study.value()->dir());
    return run_study(*study.value(), settings_, console_);
  }

  int resume(const fs::path& dir) {
    host::ResumeOptions options;
    options.trust_folder = settings_.trust_folder;
    options.time_used =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began_);
    auto study = host::Study::resume(dir, options);
    if (!study.ok()) return console_.error(study.status().message()), exit_status(study.status());
    settings_.resumed = true;
    return run_study(*study.value(), settings_, console_);
  }

  const Values& values_;
  const ExperimentRequest request_;
  host::StudyOptions options_;
  Console& console_;
  RunSettings settings_;
  fs::path dir_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

ExperimentForm form_of(const Tokens& arguments) {
  ExperimentForm form;
  form.set = experiment_options();
  form.arguments = arguments;
  if (!arguments.empty() && is_search_method(arguments.front())) {
    form.method = arguments.front();
    form.arguments.erase(form.arguments.begin());
    hide(form.set, "searcher");
  }
  return form;
}

}  // namespace

int tune_experiment(const Tokens& arguments, Console& console) {
  ExperimentForm form = form_of(arguments);
  const Preview wanted = preview(form.set, form.arguments, Grammar::operands);
  if (wanted.version) return print_version(console), kBestFound;
  const Strategies strategies = choose(form, wanted);
  add_plugin_options(form.set, strategies.searcher, strategies.profiler);
  if (wanted.help) return print_help(kUsageText, form.set, console), kBestFound;

  const Split parts = split(form.set, form.arguments, Grammar::operands);
  const Values values(form.set, parts.options);
  if (values.given("json")) console.reserve_stdout_for_json();
  ExperimentRequest request = request_of(parts, values);
  host::StudyOptions options = options_of(form, values, request, console);
  options.searcher = {strategies.searcher_name, given_plugin_options(form.set, values, strategies.searcher)};
  options.profiler = {strategies.profiler_name, given_plugin_options(form.set, values, strategies.profiler)};

  int restarts = kDefaultSearchRunnerRestarts;
  if (const auto file = values.text("search-runner-config")) {
    const SearchRunner runner = read_search_runner(*file);
    if (!runner.name.empty()) options.name = runner.name;
    restarts = runner.max_restarts.value_or(restarts);
    for (const std::string& notice : runner.notices) console.line(fmt::format("warning: {}", notice));
  }
  restarts = values.small_integer("max-search-runner-restarts").value_or(restarts);
  return ExperimentRun(values, std::move(request), std::move(options), console).run(restarts);
}

}  // namespace dsat::cli
