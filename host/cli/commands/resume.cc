// dsat-host resume: reads limits that may change from the command line, and all other settings from the run directory.
// An option that only a new study takes is refused with a list of the options of resume.
#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "commands/tune_as_deepspeed.h"
#include "dsat/base/secrets.h"
#include "dsat/base/shell.h"
#include "dsat/error.h"
#include "dsat/host/plugins.h"
#include "dsat/host/study.h"
#include "options/other_searchers.h"
#include "options/plugin_options.h"
#include "options/preview.h"
#include "options/study_options.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host resume DIR [options]\n"
    "\n"
    "Continues an interrupted study, or a finished one with a raised limit. All other settings stay as they were.\n"
    "--searcher continues with another searcher; name one to see its own options here.\n"
    "\n";

// An option of a new study is not a misspelt one, so it gets another message.
void refuse_fixed_options(const Tokens& arguments, const OptionSet& allowed) {
  const OptionSet all = tune_options();
  for (const std::string& token : arguments) {
    const std::string spelling = token.substr(0, token.find('='));
    if (allowed.find(spelling) == nullptr && all.find(spelling) != nullptr) {
      throw Error(
          fmt::format("{} cannot change when a study is resumed: resume takes --max-trials, --time-budget, --budget, "
                      "--max-concurrent-trials, --run-full-experiment, --searcher and its options, "
                      "--accept-changed-plugins, --plugin-timeout, --trust-folder, --quiet, --verbose, --json and "
                      "--events",
                      spelling));
    }
  }
}

// The command that the journal names, as a shell would take it.
std::string command_of(const Json& settings) {
  std::string text;
  for (const Json& word : settings.value("command", Json::array())) {
    if (word.is_string()) text += (text.empty() ? "" : " ") + shell_quote(word.get<std::string>());
  }
  return mask_secrets(text);
}

}  // namespace

int resume(const Tokens& arguments, Console& console) {
  OptionSet set = resume_options();
  std::optional<host::PluginInfo> searcher;
  const Preview wanted = preview(set, arguments, Grammar::operands);
  const host::PluginProcesses processes = plugin_processes(Values(set, wanted.plugin_processes));
  if (wanted.searcher) {
    auto found = host::find_strategy(*wanted.searcher, host::PluginKind::searcher, processes);
    if (!found.ok()) return console.error(found.status().message()), exit_status(found.status());
    searcher = found.value();
    add_plugin_options(set, *searcher, host::PluginInfo());
  }
  refuse_fixed_options(arguments, set);
  const auto request =
      read_or_explain(set, processes, [&] { return read_request(set, arguments, kUsageText, console); });
  if (!request) return kBestFound;
  const std::filesystem::path dir = only_directory(request->operands, "resume");
  host::ResumeOptions options = resume_options(request->values);
  if (searcher) {
    options.searcher = host::StrategyChoice{request->values.text("searcher").value_or(""),
                                            given_plugin_options(set, request->values, *searcher)};
  }

  RunSettings settings = run_settings(request->values);
  settings.resumed = true;
  settings.max_trials = options.max_trials.value_or(0);
  auto study = host::Study::resume(dir, options);
  if (!study.ok()) return console.error(study.status().message()), exit_status(study.status());
  if (settings.run_full_experiment && study.value()->settings().value("runner", "") == "sim") refuse_training();
  if (const std::string command = command_of(study.value()->settings()); !command.empty()) {
    settings.notices.push_back(fmt::format("resumes        {}", command));
  }
  return run_in_its_form(*study.value(), std::move(settings), console);
}

}  // namespace dsat::cli
