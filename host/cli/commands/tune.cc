// dsat-host [options] [--] COMMAND...: finds the plugins first, because they declare options, then reads the command
// line and runs the study. dsat-host space [options] [--] COMMAND... prints its space instead.

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/print_space.h"
#include "commands/program_help.h"
#include "commands/run_study.h"
#include "commands/subcommand.h"
#include "commands/tune_as_deepspeed.h"
#include "deepspeed/apply_autotuning.h"
#include "deepspeed/command_line.h"
#include "dsat/host/plugins.h"
#include "dsat/host/study.h"
#include "options/actions.h"
#include "options/current_folder.h"
#include "options/misplaced_option.h"
#include "options/other_searchers.h"
#include "options/plugin_options.h"
#include "options/preview.h"
#include "options/study_options.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

constexpr const char* kSpaceUsage =
    "Usage: dsat-host space [options] -- COMMAND...\n"
    "\n"
    "Prints what `dsat-host [options] -- COMMAND...` would search, and runs nothing. The options are the same:\n"
    "dsat-host --help.\n"
    "\n";

enum class Purpose { tune, print_space };

int read_command_line(const Tokens& arguments, Purpose purpose, Console& console) {
  OptionSet set = tune_options();
  const Preview wanted = preview(set, arguments);
  if (wanted.version) return print_version(console), kBestFound;
  const bool names_plugin = wanted.searcher || wanted.profiler;
  if (wanted.help && purpose == Purpose::print_space) return console.print(kSpaceUsage), kBestFound;
  if (wanted.help && !names_plugin) return print_program_help(set, wanted, console), kBestFound;

  const AutotuningChoice autotuning = read_autotuning(arguments, wanted.ds_config, wanted.autotuning);
  const std::optional<TunerChoice> tuner = wanted.searcher ? std::nullopt : searcher_of(autotuning);
  const std::string searcher_name = wanted.searcher.value_or(tuner ? tuner->searcher : kDefaultSearcher);
  const std::string profiler_name = wanted.profiler.value_or(host::StudyOptions().profiler.plugin);
  const host::PluginProcesses processes = plugin_processes(Values(set, wanted.plugin_processes));
  const auto searcher = host::find_strategy(searcher_name, host::PluginKind::searcher, processes);
  if (!searcher.ok()) return console.error(searcher.status().message()), exit_status(searcher.status());
  const auto profiler = host::find_strategy(profiler_name, host::PluginKind::profiler, processes);
  if (!profiler.ok()) return console.error(profiler.status().message()), exit_status(profiler.status());
  add_plugin_options(set, searcher.value(), profiler.value());
  if (wanted.help) return print_program_help(set, wanted, console), kBestFound;

  Split parts = read_or_explain(set, processes, [&] { return split(set, arguments, Grammar::command); });
  const Values values(set, parts.options);
  const std::optional<Autotuning> mode = autotuning_of(values);
  if (mode) parts.rest = deepspeed_command(values, parts.rest, current_folder());
  host::StudyOptions options = study_options(values);
  if (mode && options.runner != "slurm") options.account.clear();  // --account is for the launcher's own jobs
  if (!mode && (!options.simulation || !parts.rest.empty())) check_command(parts);
  options.command = std::move(parts.rest);
  if (autotuning.config.is_object()) options.already_read = {autotuning.file, autotuning.config};
  options.searcher = {searcher_name, given_plugin_options(set, values, searcher.value())};
  options.profiler = {profiler_name, given_plugin_options(set, values, profiler.value())};
  std::vector<std::string> notices = apply_autotuning(autotuning, values, searcher.value(), options);
  if (!mode) {
    if (auto notice = notice_of_misplaced_option(set, options.command, current_folder())) {
      notices.push_back(std::move(*notice));
    }
  }
  if (tuner) notices.insert(notices.begin(), tuner->notice);
  if (values.given("json")) console.reserve_stdout_for_json();

  if (purpose == Purpose::print_space) return print_space(options, console);
  RunSettings settings = run_settings(values);
  settings.max_trials = options.max_trials;
  settings.notices = std::move(notices);
  if (mode) {
    return tune_as_deepspeed(*mode, autotuning, values, parts.options, std::move(options), std::move(settings),
                             console);
  }
  auto study = host::Study::create(std::move(options));
  if (!study.ok()) return console.error(study.status().message()), exit_status(study.status());
  return run_study(*study.value(), settings, console);
}

}  // namespace

int tune(const Tokens& arguments, Console& console) { return read_command_line(arguments, Purpose::tune, console); }

int space(const Tokens& arguments, Console& console) {
  return read_command_line(arguments, Purpose::print_space, console);
}

}  // namespace dsat::cli
