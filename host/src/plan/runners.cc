// Chooses, checks and makes runners. A new cluster needs an engine (runner/engine.h) in its own folder and a branch in
// each of these functions.
#include "plan/runners.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dsat/base/random_bits.h"
#include "dsat/base/shell.h"
#include "local/local_engine.h"
#include "prefix/prefix_engine.h"
#include "runner/preflight.h"
#include "runner/trial_runner.h"
#include "sim/simulated_runner.h"
#include "slurm/allocation.h"
#include "slurm/job_engine.h"
#include "slurm/pilot_engine.h"
#include "slurm/shared_folder.h"
#include "slurm/slurm_tools.h"
#include "variables/python_package.h"

namespace dsat::host {
namespace {

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return text == word; });
}

// The token is unique on a cluster, so that two studies with the same folder name their jobs differently.
std::string make_token() { return fmt::format("dsat-{:08x}", random_bits() & 0xffffffff); }

std::string runner_of_place(const StudyOptions& options, const std::optional<CommandTemplate>& command,
                            const Environment& environment) {
  if (!options.runner_command.empty()) return kPrefixRunner;
  // If the user names hosts or slots, or starts the command by srun, the command is used as it is.
  const bool own_place = !options.hostfile.empty() || options.slots ||
                         (command && (command->launcher_use().wrapper || !command->resources().hostfile.empty()));
  const bool allocated = is_in_allocation(environment) && find_program("srun", "/", environment).ok();
  return allocated && !own_place ? kPilotRunner : kLocalRunner;
}

// An option that the runner does not use must not be ignored silently.
void check_options(const ClusterOptions& cluster) {
  const bool jobs = cluster.runner == kSlurmRunner;
  const auto refuse = [&](const char* option, bool given, const char* runner) {
    if (given)
      throw Error(
          fmt::format("{} belongs to --runner {}, but this study has --runner {}", option, runner, cluster.runner));
  };
  refuse("--partition", !jobs && !cluster.partition.empty(), "slurm");
  refuse("--account", !jobs && !cluster.account.empty(), "slurm");
  refuse("--qos", !jobs && !cluster.qos.empty(), "slurm");
  refuse("--constraint", !jobs && !cluster.constraint.empty(), "slurm");
  refuse("--gres", !jobs && !cluster.gres.empty(), "slurm");
  refuse("--job-time", !jobs && !cluster.job_time.empty(), "slurm");
  refuse("--slurm-option", !jobs && !cluster.slurm_options.empty(), "slurm");
  refuse("--slurm-launch", !jobs && cluster.runner != kPilotRunner && !cluster.slurm_launch.empty(), "slurm or pilot");
  refuse("--runner-command", cluster.runner != kPrefixRunner && !cluster.runner_command.empty(), "prefix");
  if (!cluster.slurm_launch.empty() && !is_one_of(cluster.slurm_launch, {"command", "srun", "deepspeed", "torchrun"})) {
    throw Error(fmt::format("--slurm-launch {}: command, srun, deepspeed or torchrun", cluster.slurm_launch));
  }
  if (!cluster.job_time.empty()) slurm_time(cluster.job_time);
}

JobRequest job_request(const Plan& plan, const std::optional<CommandTemplate>& command) {
  JobRequest request;
  static_cast<ClusterOptions&>(request) = plan;
  if (command) {
    request.launcher = command->launcher();
    request.command_has_count = command->slots_per_trial().has_value();
  }
  request.trial_timeout = plan.trial_timeout;
  return request;
}

int largest(const std::vector<int>& a, const std::vector<int>& b, int least) {
  for (const std::vector<int>* list : {&a, &b}) {
    for (const int value : *list) least = std::max(least, value);
  }
  return least;
}

// Returns as many nodes and slots as the largest trial takes.
std::vector<Slot> placeholders(const SlotRequest& request, const std::optional<CommandTemplate>& command,
                               ClusterOptions& cluster) {
  const int nodes = largest(request.num_nodes, request.section_nodes, 1);
  const int total = request.slots_per_trial.value_or(request.command_slots.value_or(nodes));
  const int per_node = largest(request.num_gpus, request.section_gpus, (total + nodes - 1) / nodes);
  const bool sized = !request.num_gpus.empty() || !request.section_gpus.empty();
  const bool launched = command && command->launcher() != Launcher::none;
  cluster.has_gpus = cluster.gres != "none" && (sized || launched || !cluster.gres.empty());
  std::vector<Slot> slots;
  for (int node = 0; node < nodes; ++node) {
    for (int i = 0; i < per_node; ++i) {
      slots.push_back({fmt::to_string(i), i, std::nullopt, fmt::format("node{}", node + 1)});
    }
  }
  return slots;
}

std::unique_ptr<Engine> make_engine(Loop& loop, const Plan& plan, const JobRequest& request,
                                    const Environment& environment, const std::filesystem::path& launcher) {
  if (plan.runner == kLocalRunner) {
    return std::make_unique<LocalEngine>(loop, launcher, plan.slots.slots, plan.max_slots);
  }
  if (plan.runner == kSlurmRunner) {
    return std::make_unique<JobEngine>(loop, JobEngineOptions{request, plan.token, plan.slots.slots,
                                                              plan.max_concurrent_trials, plan.max_slots, environment});
  }
  const RemoteEngineOptions remote{launcher, environment, plan.slots.slots, plan.max_slots};
  if (plan.runner == kPrefixRunner) {
    return std::make_unique<PrefixEngine>(loop, remote, split_prefix(plan.runner_command));
  }
  return std::make_unique<PilotEngine>(loop,
                                       PilotEngineOptions{remote, request, find_allocation(environment), plan.token});
}

// Without {host}, trials with different hosts would run at the same place.
void check_prefix(const Plan& plan) {
  const std::vector<Slot>& slots = plan.slots.slots;
  const bool has_another =
      std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.host != slots.front().host; });
  if (!has_another || plan.runner_command.find("{host}") != std::string::npos) return;
  throw Error(fmt::format(
      "--runner-command {}: it has no {{host}}, but there are several hosts: write for example 'ssh {{host}}'",
      shell_quote(plan.runner_command)));
}

}  // namespace

void choose_runner(const StudyOptions& options, const std::optional<CommandTemplate>& command,
                   const Environment& environment, ClusterOptions& cluster) {
  if (cluster.runner.empty()) cluster.runner = runner_of_place(options, command, environment);
  if (!is_one_of(cluster.runner, {kLocalRunner, kPilotRunner, kSlurmRunner, kPrefixRunner})) {
    throw Error(fmt::format("--runner {}: there is no such runner; use {}, {}, {} or {}", cluster.runner, kLocalRunner,
                            kPilotRunner, kSlurmRunner, kPrefixRunner));
  }
  if (cluster.runner == kPrefixRunner) {
    split_prefix(cluster.runner_command);
    if (options.hostfile.empty() || options.hostfile == kNoHostfile)
      throw Error("--runner-command needs --hostfile FILE: the hosts to run on");
  } else if (cluster.runner == kSlurmRunner) {
    require_slurm({"sbatch", "squeue", "scancel", "scontrol"}, environment, "--runner slurm");
  }
  check_options(cluster);
  const bool scheduled = cluster.runner == kSlurmRunner || cluster.runner == kPilotRunner;
  if (scheduled && (!options.hostfile.empty() || options.slots)) {
    throw Error(fmt::format("--runner {}: Slurm chooses the hosts and slots: leave out {}", cluster.runner,
                            options.slots ? "--slots" : "--hostfile"));
  }
  cluster.token = make_token();
}

std::vector<Slot> runner_slots(const SlotRequest& request, const std::optional<CommandTemplate>& command,
                               const Environment& environment, ClusterOptions& cluster) {
  if (cluster.runner == kSlurmRunner) return placeholders(request, command, cluster);
  if (cluster.runner != kPilotRunner) return {};
  const Allocation allocation = find_allocation(environment);
  cluster.has_gpus = std::any_of(allocation.nodes.begin(), allocation.nodes.end(),
                                 [](const AllocationNode& node) { return node.gpus > 0; });
  return allocation.slots();
}

void check_runner(const Plan& plan, const std::optional<CommandTemplate>& command, const Environment& environment) {
  if (plan.runner == kSlurmRunner) {
    check_jobs(job_request(plan, command), plan.slots.shapes(), environment);
  } else if (plan.runner == kPilotRunner) {
    check_shared(find_allocation(environment), plan.dir, plan.cwd, environment);
  } else if (plan.runner == kPrefixRunner) {
    check_prefix(plan);
  } else if (plan.runner == kLocalRunner && !plan.slots.hostfile.empty()) {
    check_hosts({plan.slots, *command, environment, plan.cwd, plan.dir});
  }
}

void renew_slots(Plan& plan, const Environment& environment) {
  if (plan.runner == kSlurmRunner)
    require_slurm({"sbatch", "squeue", "scancel", "scontrol"}, environment, "--runner slurm");
  if (plan.runner != kPilotRunner) return;
  const bool was_full = plan.slots.at_once == trials_at_once(plan.slots, plan.max_slots);
  plan.slots.slots = find_allocation(environment).slots();
  if (was_full) plan.slots.at_once = trials_at_once(plan.slots, plan.max_slots);  // otherwise trials run one at a time
  for (const TrialShape& shape : plan.slots.shapes()) {
    if (SlotPool(plan.slots.slots, plan.max_slots).take(shape)) continue;
    throw Error(
        fmt::format("this allocation has {} slots, and a trial of the study takes {} on {} nodes: get a larger one",
                    plan.slots.slots.size(), shape.slots(), shape.nodes()));
  }
}

std::unique_ptr<Runner> make_runner(Loop& loop, const Plan& plan, std::optional<CommandTemplate> command,
                                    const Environment& environment, const std::filesystem::path& launcher,
                                    const std::filesystem::path& probe) {
  if (plan.simulation) {
    return std::make_unique<SimulatedRunner>(
        loop,
        SimulatedRunnerOptions{plan, plan, plan.simulation->surface, plan.seed,
                               static_cast<int>(plan.slots.slots.size()), plan.slots.slots_per_trial, plan.max_slots});
  }
  JobRequest request = job_request(plan, command);
  request.guard = launcher;
  std::unique_ptr<Engine> engine = make_engine(loop, plan, request, environment, launcher);
  std::vector<std::string> unneeded;  // a trial that needs the package reports its absence
  return std::make_unique<TrialRunner>(
      loop,
      TrialRunnerOptions{plan, plan, plan, plan.dir, std::move(*command), environment, plan.slots,
                         find_python_package(launcher, plan.dir, false, unneeded), probe},
      std::move(engine));
}

}  // namespace dsat::host
