// dsat-trial: reads the command line and the configuration, then trains in this process or in ranks that it starts.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "environment.h"
#include "launcher.h"
#include "options.h"
#include "rank_process.h"
#include "settings.h"
#include "training.h"

namespace {

using dsat::trainer::FailureKind;

enum ExitStatus { kOk = 0, kFailed = 1, kUsage = 2 };

int report(const dsat::trainer::RankResult& result) {
  std::fflush(stdout);
  if (result.kind == FailureKind::none) return kOk;
  std::fprintf(stderr, "dsat-trial: %s\n", result.message.c_str());
  return kFailed;
}

int run(const std::vector<std::string>& args) {
  namespace trainer = dsat::trainer;
  const trainer::Options options = trainer::parse_options(args);
  if (options.help) {
    std::fputs(trainer::kHelp, stdout);
    return kOk;
  }
  const trainer::Group group = trainer::find_group(options.ranks);
  const auto read = trainer::read_settings(trainer::load_configuration(options.deepspeed_config), group.world_size,
                                           options.fp16_as_bf16);
  if (group.rank.value_or(0) == 0) {
    for (const std::string& warning : read.warnings) std::fprintf(stderr, "dsat-trial: warning: %s\n", warning.c_str());
  }
  const trainer::Plan plan{options.model, read.settings,         options.seed,
                           options.steps, options.device_memory, options.activation_checkpointing};
  trainer::Rendezvous rendezvous{group.rank.value_or(0), group.world_size, group.address, group.port};
  trainer::use_one_thread();
  if (group.rank || group.world_size == 1) return report(trainer::run_rank(plan, rendezvous));
  if (rendezvous.port == 0) rendezvous.port = trainer::free_port();
  return report(trainer::launch(group.world_size, [&](int rank) {
    rendezvous.rank = rank;
    return trainer::run_rank(plan, rendezvous);
  }));
}

}  // namespace

int main(int argc, char** argv) {
  int status = kUsage;
  try {
    status = run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const dsat::Error& error) {
    std::fprintf(stderr, "dsat-trial: %s\n", error.what());
    status = error.code() == DSAT_INTERNAL ? kFailed : kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dsat-trial: %s\n", error.what());
    status = kFailed;
  }
  // LibTorch's own teardown waits for peers that may be gone, and a trial has nothing left to save.
  std::fflush(nullptr);
  ::_exit(status);
}
