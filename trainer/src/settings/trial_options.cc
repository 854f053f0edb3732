#include "settings/trial_options.h"

#include <charconv>
#include <functional>
#include <map>

#include "dsat/config/json.h"

namespace dsat::trainer {
namespace {

int64_t parse_count(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && at == end && value >= 1) return value;
  throw Error(name + " " + text + ": expected an integer of 1 or more");
}

using Setters = std::map<std::string, std::function<void(const std::string&)>>;

Setters setters_of(TrialOptions& options) {
  Setters on;
  const auto count = [&](const char* name, auto field) {
    on[name] = [&options, name, field](const std::string& text) { options.*field = parse_count(name, text); };
  };
  const auto path = [&](const char* name, std::string TrialOptions::*field) {
    on[name] = [&options, name, field](const std::string& text) {
      if (text.empty()) throw Error(std::string(name) + " is empty; name a path");
      options.*field = text;
    };
  };
  count("--steps", &TrialOptions::steps);
  count("--epochs", &TrialOptions::epochs);
  count("--validate-every", &TrialOptions::validate_every);
  count("--report-every", &TrialOptions::report_every);
  count("--checkpoint-every", &TrialOptions::checkpoint_every);
  path("--trial", &TrialOptions::library);
  path("--checkpoints", &TrialOptions::checkpoints);
  path("--metrics", &TrialOptions::metrics);
  path("--tensorboard", &TrialOptions::tensorboard);
  on["--experiment"] = [&options](const std::string& text) {
    options.experiment = config::load_file(text);
    if (!options.experiment.is_object()) throw Error("--experiment " + text + ": is no JSON object; expected {...}");
  };
  return on;
}

}  // namespace

bool names_trial(const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--trial" || arg.rfind("--trial=", 0) == 0) return true;
  }
  return false;
}

TrialOptions parse_trial_options(const std::vector<std::string>& arguments) {
  TrialOptions options;
  const Setters on = setters_of(options);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto found = on.find(name);
    if (found == on.end()) throw Error("unknown argument '" + argument + "'; dsat-trial --trial LIB --help lists them");
    if (equals != std::string::npos) {
      found->second(argument.substr(equals + 1));
    } else if (++i < arguments.size()) {
      found->second(arguments[i]);
    } else {
      throw Error(name + " needs a value");
    }
  }
  if (options.steps && options.epochs) throw Error("--steps and --epochs are both given; give one");
  if (options.checkpoint_every > 0 && options.checkpoints.empty()) {
    throw Error("--checkpoint-every without --checkpoints DIR: there is nowhere to put them");
  }
  return options;
}

const char* const kTrialHelp =
    "dsat-trial --trial LIB.so --deepspeed_config FILE [options]: trains a trial of your own\n"
    "\n"
    "  --trial LIB.so           the library; built from dsat's headers, with DSAT_TRIAL(YourTrial)\n"
    "  --deepspeed_config FILE  the DeepSpeed configuration; without it the hyperparameter deepspeed_config names it\n"
    "  --experiment FILE.json   what get_experiment_config() and get_hparam() read\n"
    "  --ranks N                processes to start here (1)\n"
    "  --device DEVICE          cpu, cuda or auto (default: cuda where there is one)\n"
    "  --device-memory SIZE     memory of each rank's device\n"
    "  --seed N                 of parameters, data and dropout (42)\n"
    "  --steps N | --epochs N   how long to train, optimizer steps or passes (one epoch)\n"
    "  --validate-every N       optimizer steps between validations (an epoch)\n"
    "  --report-every N         optimizer steps between reports (1)\n"
    "  --checkpoints DIR        where to keep the newest checkpoint, and to go on from it\n"
    "  --checkpoint-every N     optimizer steps between checkpoints (at the end only)\n"
    "  --metrics FILE           reported metrics as lines of JSON\n"
    "  --tensorboard DIR        where event files and traces go (tensorboard)\n";

}  // namespace dsat::trainer
