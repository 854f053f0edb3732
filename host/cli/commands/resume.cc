// dsat-host resume: the limits that may change are read from the command line, all else from the run directory.
// An option of a new study is refused with the list of those that may be given.
#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/subcommand.h"
#include "commands/tune_as_deepspeed.h"
#include "dsat/error.h"
#include "dsat/host/study.h"
#include "options/study_options.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host resume DIR [options]\n"
    "\n"
    "Takes up an interrupted study, or a finished one with a raised limit. All else is as it was.\n"
    "\n";

// An option of a new study is no typing error and deserves another answer than a misspelt one.
void refuse_fixed_options(const Tokens& arguments, const OptionSet& allowed) {
  const OptionSet all = tune_options();
  for (const std::string& token : arguments) {
    const std::string spelling = token.substr(0, token.find('='));
    if (allowed.find(spelling) == nullptr && all.find(spelling) != nullptr) {
      throw Error(
          fmt::format("{} cannot change when a study is resumed: resume takes --max-trials, --time-budget, "
                      "--max-concurrent-trials, --quiet, --verbose and --json",
                      spelling));
    }
  }
}

}  // namespace

int resume(const Tokens& arguments, Console& console) {
  const OptionSet set = resume_options();
  refuse_fixed_options(arguments, set);
  const auto request = read_request(set, arguments, kUsageText, console);
  if (!request) return kBestFound;
  const std::filesystem::path dir = only_directory(request->operands, "resume");
  const host::ResumeOptions options = resume_options(request->values);

  RunSettings settings;
  settings.quiet = request->values.given("quiet");
  settings.verbose = request->values.given("verbose");
  settings.resumed = true;
  settings.max_trials = options.max_trials.value_or(0);
  settings.time_budget = options.time_budget;
  auto study = host::Study::resume(dir, options);
  if (!study.ok()) return console.error(study.status().message()), exit_status(study.status());
  return run_in_its_form(*study.value(), std::move(settings), console);
}

}  // namespace dsat::cli
