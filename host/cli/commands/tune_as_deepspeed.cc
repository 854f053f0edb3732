// Decides by the contents of results_dir whether a study is new, continues, or replaces an earlier one. Two requests
// are the same if command, configuration, lasting options and script are equal.
#include "commands/tune_as_deepspeed.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "deepspeed/result_files.h"
#include "deepspeed/study_file.h"
#include "dsat/base/owner.h"
#include "dsat/config/json.h"
#include "dsat/error.h"
#include "options/current_folder.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResultsDir = "autotuning_results";
constexpr const char* kExpsDir = "autotuning_exps";

// These options and keys do not change the search, so a study with other values of them is continued.
constexpr const char* kPassingOptions[] = {
    "--autotuning", "--max-trials",          "--time-budget", "--json",   "--max-concurrent-trials",
    "--quiet",      "--run-full-experiment", "--verbose",     "--budget", "--events"};
constexpr const char* kPassingKeys[] = {"autotuning.enabled", "autotuning.overwrite", "autotuning.results_dir",
                                        "autotuning.exps_dir", "autotuning.tuner_num_trials"};

Json lasting_options(const Tokens& given) {
  Json options = Json::array();
  for (const std::string& option : given) {
    const std::string name = option.substr(0, option.find('='));
    const bool passing =
        std::find(std::begin(kPassingOptions), std::end(kPassingOptions), name) != std::end(kPassingOptions);
    if (!passing) options.push_back(option);
  }
  std::sort(options.begin(), options.end());
  return options;
}

Json request_of(const AutotuningChoice& choice, const Tokens& given, const Tokens& command, const fs::path& cwd) {
  Json config = choice.config;
  if (config.is_object()) {
    for (const char* key : kPassingKeys) config::erase(config, key);
  }
  std::string script;
  for (size_t i = 1; i < command.size() && script.empty(); ++i) {
    std::error_code error;
    if (fs::is_regular_file(cwd / command[i], error)) script = fingerprint(cwd / command[i]);
    if (fs::path(command[i]).extension() == ".py") break;
  }
  return {{"command", command}, {"configuration", config}, {"options", lasting_options(given)}, {"script", script}};
}

DeepspeedStudy places_of(const AutotuningSection& section, const fs::path& output_dir, const fs::path& cwd) {
  DeepspeedStudy study;
  study.results_dir = (cwd / section.results_dir.value_or(kResultsDir)).lexically_normal();
  study.exps_dir = (cwd / section.exps_dir.value_or(kExpsDir)).lexically_normal();
  for (fs::path* dir : {&study.results_dir, &study.exps_dir}) {
    if (!dir->has_filename()) *dir = dir->parent_path();  // "results/"
  }
  study.dir = output_dir.empty() ? study.results_dir / kDeepspeedRunDir : (cwd / output_dir).lexically_normal();
  return study;
}

// The study lies in the folder of the results. What an earlier study names is removed there.
void refuse_results_of_others(const fs::path& results_dir, bool trust_folder) {
  const std::string why = trust_folder ? "" : why_others_control(results_dir);
  if (why.empty()) return;
  throw Error(fmt::format("{}: {}: give another results_dir, or --trust-folder if you trust what is in it",
                          results_dir.string(), why));
}

int resume_study(const DeepspeedStudy& form, const AutotuningChoice& choice, const Values& values,
                 const host::StudyOptions& options, RunSettings settings, Console& console) {
  host::ResumeOptions resumed;
  if (values.given("max-trials") || choice.section.tuner_num_trials) resumed.max_trials = options.max_trials;
  if (values.given("max-concurrent-trials")) resumed.max_concurrent_trials = options.max_concurrent_trials;
  resumed.time_budget = options.time_budget;
  resumed.same_time_goes_on = false;  // the same command again shows the results
  resumed.budget = options.budget;
  resumed.trust_folder = options.trust_folder;
  auto study = host::Study::resume(form.dir, resumed);
  if (!study.ok()) return console.error(study.status().message()), exit_status(study.status());
  write_deepspeed_study(form);
  settings.resumed = true;
  settings.max_trials = 0;
  settings.notices = {fmt::format(
      "{} holds results of the same request: they are reused (\"overwrite\": true in the autotuning section "
      "begins a new study)",
      form.results_dir.string())};
  return run_in_its_form(*study.value(), std::move(settings), console);
}

}  // namespace

int run_in_its_form(host::Study& study, RunSettings settings, Console& console) {
  const std::unique_ptr<DeepspeedOutput> output = deepspeed_output(study.dir(), console);
  if (!output) return run_study(study, settings, console);
  settings.run_full_experiment |= output->study().run;
  return run_study(study, settings, console, {output.get()});
}

int tune_as_deepspeed(Autotuning mode, const AutotuningChoice& choice, const Values& values, const Tokens& given,
                      host::StudyOptions options, RunSettings settings, Console& console) {
  const fs::path cwd = current_folder();
  DeepspeedStudy form = places_of(choice.section, options.output_dir, cwd);
  refuse_results_of_others(form.results_dir, options.trust_folder);
  form.run = mode == Autotuning::run;
  form.request = request_of(choice, given, options.command, cwd);
  if (!values.given("zero-stages")) options.zero_stages = deepspeed_stages(choice.config).value_or(options.zero_stages);

  const bool overwrite = choice.section.overwrite.value_or(false);
  if (!overwrite && existing_results(form) == ExistingResults::of_same_request) {
    return resume_study(form, choice, values, options, std::move(settings), console);
  }
  std::vector<fs::path> outdated;
  if (const auto earlier = read_deepspeed_study(form.dir)) {
    outdated = deepspeed_results(*earlier);
    options.replace_study = true;
  }
  options.output_dir = form.dir;
  auto study = host::Study::create(std::move(options));
  if (!study.ok()) return console.error(study.status().message()), exit_status(study.status());
  std::error_code ignored;
  for (const fs::path& path : outdated) fs::remove_all(path, ignored);
  write_deepspeed_study(form);
  return run_in_its_form(*study.value(), std::move(settings), console);
}

}  // namespace dsat::cli
