// Declares the options of a trial's library and reads them from what the options of the world leave.
// The experiment's file is read here, so that a wrong one is refused before any rank is started.
#include "settings/trial_options.h"

#include <fmt/format.h>

#include "dsat/cli/help.h"
#include "dsat/cli/values.h"
#include "settings/experiment_file.h"
#include "settings/world_option_set.h"

namespace dsat::trainer {
namespace {

using cli_kit::Option;
using cli_kit::OptionSet;
using cli_kit::Values;

OptionSet trial_option_set() {
  OptionSet set;
  add_options(
      set, "The trial",
      {Option::path("trial", "LIB.so", "the library; built from dsat's headers, with DSAT_TRIAL(YourTrial)"),
       Option::path("experiment", "FILE", "JSON, or FILE.yaml: what get_experiment_config() and get_hparam() read"),
       Option::integer("steps", "how long to train, in optimizer steps").from(1),
       Option::integer("epochs", "how long to train, in passes over the data").from(1).by_default(1),
       Option::integer("validate-every", "optimizer steps between validations").from(1).by_default("an epoch"),
       Option::integer("report-every", "optimizer steps between reports").from(1).by_default(1),
       Option::path("weights", "FILE",
                    "start from these weights: safetensors, or torch.save(model.state_dict(), FILE); for one engine"),
       Option::path("checkpoints", "DIR", "where to keep the newest checkpoint, and to go on from it"),
       Option::integer("checkpoint-every", "optimizer steps between checkpoints").from(1).by_default("at the end only"),
       Option::path("metrics", "FILE", "reported metrics as lines of JSON"),
       Option::path("tensorboard", "DIR", "where event files and traces go").by_default("tensorboard")});
  return set;
}

OptionSet trial_and_world_options() {
  OptionSet set = trial_option_set();
  const OptionSet world = world_option_set();
  for (const Option& option : world.options()) set.add(option);
  return set;
}

}  // namespace

bool names_trial(const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--trial" || arg.rfind("--trial=", 0) == 0) return true;
  }
  return false;
}

TrialOptions parse_trial_options(const std::vector<std::string>& arguments) {
  const OptionSet set = trial_option_set();
  const cli_kit::Split parts = cli_kit::split(set, arguments, cli_kit::Grammar::shared);
  const Values values(set, parts.options);
  refuse_leftovers(parts.rest, trial_and_world_options(), "dsat-trial --trial LIB --help");
  TrialOptions options;
  options.library = values.text("trial").value_or("");
  if (const auto file = values.text("experiment")) options.experiment = load_experiment(*file);
  options.steps = values.integer("steps");
  options.epochs = values.integer("epochs");
  options.validate_every = values.integer("validate-every").value_or(options.validate_every);
  options.report_every = values.integer("report-every").value_or(options.report_every);
  options.checkpoint_every = values.integer("checkpoint-every").value_or(options.checkpoint_every);
  options.weights = values.text("weights").value_or("");
  options.checkpoints = values.text("checkpoints").value_or("");
  options.metrics = values.text("metrics").value_or("");
  options.tensorboard = values.text("tensorboard").value_or("");
  if (options.steps && options.epochs) throw Error("--steps and --epochs are both given; give one");
  if (options.checkpoint_every > 0 && options.checkpoints.empty()) {
    throw Error("--checkpoint-every without --checkpoints DIR: there is nowhere to put them");
  }
  return options;
}

std::string trial_options_help() {
  constexpr unsigned kColumns = 100;
  return fmt::format(
      "usage: dsat-trial --trial LIB.so --deepspeed_config FILE [options]\n\n"
      "Trains a trial of your own. Without --deepspeed_config the hyperparameter deepspeed_config names the file.\n\n"
      "{}",
      cli_kit::help_text(trial_and_world_options(), kColumns));
}

}  // namespace dsat::trainer
