// The life of a training program: options, configuration, ranks, one line about a failure, the exit status.
// The process ends with _exit(): LibTorch's teardown would wait for peers that may be gone.
#include "dsat/trainer/world.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/error_text.h"
#include "device/device.h"
#include "dsat/base/ports.h"
#include "ranks/launcher.h"
#include "ranks/rank_process.h"
#include "settings/environment.h"
#include "settings/settings.h"
#include "watch/last_words.h"

namespace dsat::trainer {
namespace {

enum ExitStatus { kOk = 0, kFailed = 1, kUsage = 2 };

int status_of(FailureKind kind) {
  if (kind == FailureKind::none) return kOk;
  return kind == FailureKind::usage ? kUsage : kFailed;
}

int report(const std::string& program, const RankResult& result) {
  std::fflush(stdout);
  if (result.kind != FailureKind::none) std::fprintf(stderr, "%s: %s\n", program.c_str(), result.message.c_str());
  return status_of(result.kind);
}

// LibTorch's own teardown waits for peers that may be gone, and nothing is left to save.
[[noreturn]] void end_process(int status) {
  std::fflush(nullptr);
  ::_exit(status);
}

// Before any rank is started: a wrong configuration runs nothing.
Json checked_configuration(const WorldOptions& options, const Group& group) {
  if (options.deepspeed_config.empty()) return nullptr;
  Json config = load_configuration(options.deepspeed_config);
  if (options.pipeline_stages > 0) set_pipeline_stages(config, options.pipeline_stages, "--pipeline-stages");
  const bool is_cpu = options.device == DeviceChoice::cpu;
  const SettingsResult read = read_settings(config, group.world_size, fp16_on(is_cpu, options.fp16_as_bf16));
  if (group.rank.value_or(0) == 0) {
    for (const std::string& warning : read.warnings) {
      std::fprintf(stderr, "%s: warning: %s\n", options.program.c_str(), warning.c_str());
    }
  }
  return config;
}

// Ranks of another launcher have a log each: every one names the first cause, and ends with its status.
int run_alone(const WorldOptions& options, const Json& config, Rendezvous rendezvous,
              const std::function<void(World&)>& body) {
  rendezvous.on_cause_of_others = [&](const Cause& cause) {
    const FailureKind kind = cause.status == kUsage ? FailureKind::usage : FailureKind::error;
    end_process(report(options.program, {kind, cause.text}));
  };
  const RankResult result = run_rank(options, config, rendezvous, body);
  if (result.kind == FailureKind::peer_lost) wait_for_cause();
  std::optional<Cause> own;
  if (result.kind != FailureKind::none) own = Cause{status_of(result.kind), result.message};
  leave_others(own);
  return report(options.program, result);
}

int run_all(WorldOptions options, const std::function<void(World&)>& body) {
  require_address_space();
  options.device = resolve_device(options.device);
  const Group group = find_group(options.ranks);
  const Json config = checked_configuration(options, group);
  Rendezvous rendezvous{group.rank.value_or(0), group.world_size, group.address, group.port};
  use_one_thread();
  set_last_words(STDERR_FILENO, options.program + ": ");
  if (group.rank || group.world_size == 1) {
    return run_alone(options, config, rendezvous, body);
  }
  if (rendezvous.port == 0) rendezvous.port = free_port();
  const auto run_one = [&](int rank) {
    rendezvous.rank = rank;
    return run_rank(options, config, rendezvous, body);
  };
  return report(options.program,
                launch(group.world_size, run_one, {options.program, std::chrono::seconds(options.stop_grace_s)}));
}

// Prints what `call` throws, and gives the status.
int guarded(const std::string& program, const std::function<int()>& call) {
  try {
    return call();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
    return error.code() == DSAT_INTERNAL ? kFailed : kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error_text(error).c_str());
    return kFailed;
  }
}

}  // namespace

World::World(std::unique_ptr<Comm> comm, WorldOptions options, Json config, at::Device device)
    : comm_(std::move(comm)),
      options_(std::move(options)),
      config_(std::move(config)),
      local_rank_(local_rank_of(comm_->rank())),
      device_(device) {}

void run(const WorldOptions& options, const std::function<void(World&)>& body) {
  end_process(guarded(options.program, [&] { return run_all(options, body); }));
}

int run(int argc, char** argv, const std::function<void(World&)>& body) {
  std::string program = argc > 0 ? argv[0] : "trial";
  program = program.substr(program.rfind('/') + 1);
  WorldOptions options;
  const int failed = guarded(program, [&] {
    options = parse_world_options(std::vector<std::string>(argv + 1, argv + argc));
    return 0;
  });
  if (failed != 0) return failed;
  options.program = program;
  run(options, body);
}

}  // namespace dsat::trainer
