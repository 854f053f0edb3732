// dsat-trial: trains a built-in model, or a user's trial, in this process or in ranks that it starts.
// Reads the command line and loads a trial's library once, before any rank is started.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "program/builtin_training.h"
#include "settings/options.h"
#include "settings/trial_options.h"
#include "trial/controller.h"
#include "trial/trial_library.h"

namespace {

namespace trainer = dsat::trainer;

struct Job {
  trainer::WorldOptions world;
  std::function<void(trainer::World&)> body;  // empty: there was only help to print
};

bool asks_for_help(const std::vector<std::string>& args) {
  return std::any_of(args.begin(), args.end(), [](const std::string& arg) { return arg == "--help" || arg == "-h"; });
}

// The library is loaded here, once, before any rank is started.
Job trial_job(const std::vector<std::string>& args) {
  if (asks_for_help(args)) {
    std::fputs(trainer::trial_options_help().c_str(), stdout);
    return {};
  }
  const trainer::WorldOptions world = trainer::parse_world_options(args);
  const auto options = std::make_shared<trainer::TrialOptions>(trainer::parse_trial_options(world.arguments));
  const auto library = std::make_shared<trainer::TrialLibrary>(options->library);
  return {world, [options, library](trainer::World& world) { trainer::run_trial(world, *library, *options); }};
}

Job model_job(const std::vector<std::string>& args) {
  const trainer::Options options = trainer::parse_options(args);
  if (options.help) {
    std::fputs(trainer::options_help().c_str(), stdout);
    return {};
  }
  return {options, [options](trainer::World& world) { trainer::train(options, world); }};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  Job job;
  try {
    job = trainer::names_trial(args) ? trial_job(args) : model_job(args);
  } catch (const dsat::Error& error) {
    std::fprintf(stderr, "dsat-trial: %s\n", error.what());
    return 2;
  }
  if (job.body) trainer::run(job.world, job.body);
}
