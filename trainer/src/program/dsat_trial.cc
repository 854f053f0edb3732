// The program: trains a built-in model, or a user's trial, in this process or in ranks that it starts.
// Reads the command line and loads a trial's library once, before any rank is started.
#include "program/dsat_trial.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "program/builtin_training.h"
#include "program/export_command.h"
#include "settings/options.h"
#include "settings/trial_options.h"
#include "trial/controller.h"
#include "trial/trial_library.h"

namespace dsat::trainer {
namespace {

struct Job {
  WorldOptions world;
  std::function<void(World&)> body;  // empty: there was only help to print
};

bool asks_for_help(const std::vector<std::string>& args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& arg) { return arg == "--help" || arg == "-h"; });
}

// The library is loaded here, once, before any rank is started.
Job trial_job(const std::vector<std::string>& args) {
  if (asks_for_help(args)) {
    std::fputs(trial_options_help().c_str(), stdout);
    return {};
  }
  const WorldOptions world = parse_world_options(args);
  const auto options = std::make_shared<TrialOptions>(parse_trial_options(world.arguments));
  const auto library = std::make_shared<TrialLibrary>(options->library);
  return {world, [options, library](World& world) { run_trial(world, *library, *options); }};
}

Job model_job(const std::vector<std::string>& args) {
  const bool wants_completion = args.size() == 2 && args[0] == "completion";
  if (wants_completion || args == std::vector<std::string>{"man"}) {
    std::fputs(options_manual(wants_completion ? args[1] : "").c_str(), stdout);
    return {};
  }
  const Options options = parse_options(args);
  if (options.help) {
    std::fputs(options_help().c_str(), stdout);
    return {};
  }
  return {options, [options](World& world) { train(options, world); }};
}

}  // namespace

int dsat_trial(const std::vector<std::string>& args) {
  Job job;
  try {
    if (!args.empty() && args.front() == "export") {
      export_command({args.begin() + 1, args.end()});
      return 0;
    }
    job = names_trial(args) ? trial_job(args) : model_job(args);
  } catch (const Error& error) {
    std::fprintf(stderr, "dsat-trial: %s\n", error.what());
    return error.code() == DSAT_INTERNAL ? 1 : 2;
  }
  if (job.body) run(job.world, job.body);
  return 0;
}

}  // namespace dsat::trainer
