// Merges the requests of options, launcher flags and the autotuning section, plans the slots, and checks that the
// command can use them.
#include "plan/plan_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "plan/runners.h"
#include "slots/hostfile.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

// Returns a number or a list from the autotuning section; null and "auto" mean not given, as in DeepSpeed.
std::vector<int> numbers_at(const Json& config, const char* key) {
  const Json* value = config::find(config, key);
  if (value == nullptr || value->is_null() || *value == "auto") return {};
  const Json list = value->is_array() ? *value : Json::array({*value});
  std::vector<int> numbers;
  for (const Json& element : list) {
    constexpr int kMost = 1 << 20;
    if (!element.is_number_integer() || element.get<int64_t>() < 1 || element.get<int64_t>() > kMost) {
      throw Error(fmt::format("{} is {}: it must be a number of at least 1, or a list of them", key, value->dump()));
    }
    numbers.push_back(element.get<int>());
  }
  if (numbers.empty()) throw Error(fmt::format("{} is an empty list: name at least one number", key));
  return numbers;
}

// Returns the value that is given; empty: neither is.
std::string one_of(const char* option, const std::string& of_options, const std::string& of_launcher) {
  if (!of_options.empty() && !of_launcher.empty()) {
    throw Error(fmt::format("{} is given to dsat-host ({}) and to the deepspeed launcher ({}): keep one", option,
                            of_options, of_launcher));
  }
  return of_options + of_launcher;
}

// If the given hostfile does not exist, the launcher uses only this machine. Returns a notice if a file may be missing
// by mistake, else "".
std::string notice_of_no_hostfile(const fs::path& hostfile) {
  if (hostfile == kNoHostfile) return "";
  constexpr const char* kNotice =
      "hostfile {} of the command does not exist: as with the deepspeed launcher, trials use only this machine; "
      "correct "
      "the name if other hosts are meant";
  return fmt::format(kNotice, hostfile.string());
}

// Sets hosts and usable slots. Returns a notice, or "".
std::string request_hosts(const SlotOptions& options, const LauncherResources& launcher, const fs::path& cwd,
                          SlotRequest& request) {
  const std::string hostfile = one_of("--hostfile", options.hostfile.string(), launcher.hostfile);
  request.include = one_of("--include", options.include, launcher.include);
  request.exclude = one_of("--exclude", options.exclude, launcher.exclude);
  std::error_code ignored;
  const bool is_there = fs::exists(cwd / hostfile, ignored);
  if (hostfile == kDefaultHostfile && !is_there) return "";
  const bool is_none = !is_there || hostfile == kNoHostfile;
  if (is_none && (!launcher.hostfile.empty() || hostfile == kNoHostfile)) return notice_of_no_hostfile(cwd / hostfile);
  if (hostfile.empty()) return "";
  request.hostfile = cwd / hostfile;
  if (fs::is_fifo(request.hostfile, ignored)) request.hostfile_text = read_hostfile_text(request.hostfile);
  return "";
}

// Sets GPUs and nodes from options or launcher flags.
void request_size(const SlotOptions& options, const LauncherResources& launcher, SlotRequest& request) {
  // The launcher writes "all" as -1, which is no number.
  const auto positive = [](const std::optional<int>& count) {
    return count && *count > 0 ? std::vector<int>{*count} : std::vector<int>();
  };
  request.num_gpus = options.num_gpus.empty() ? positive(launcher.num_gpus) : options.num_gpus;
  request.num_nodes = options.num_nodes.empty() ? positive(launcher.num_nodes) : options.num_nodes;
  // The option --slots-per-trial has priority over the launcher's flags.
  if (!options.slots_per_trial || !options.num_gpus.empty() || !options.num_nodes.empty()) return;
  request.num_gpus.clear();
  request.num_nodes.clear();
}

// If the command cannot use a size, no trial would have that size.
void check_command(const SlotPlan& plan, const CommandTemplate& command, const ClusterOptions& cluster) {
  const bool deepspeed = command.launcher() == Launcher::deepspeed;
  if (!plan.hostfile.empty() && !deepspeed && cluster.runner == kLocalRunner) {
    throw Error(
        fmt::format("hostfile {}: only the deepspeed launcher reaches its hosts, and the command starts another "
                    "program: write deepspeed before the script, or drop the hostfile",
                    plan.hostfile.string()));
  }
  // In Slurm, srun starts as many processes as a trial has slots.
  const bool scheduled = cluster.runner == kSlurmRunner || cluster.runner == kPilotRunner;
  if (plan.sizes_are_tuned() && !scheduled && !command.takes_a_size()) {
    throw Error(
        "num_gpus lists several sizes, but the command takes none: start the script with deepspeed, torchrun or "
        "accelerate launch, or write --num_gpus N where it takes the number");
  }
  for (const Slot& slot : plan.slots) {
    if (!deepspeed || slot.ordinal) continue;
    throw Error(
        fmt::format("slot {} has no index, but the deepspeed launcher needs one: name whole devices in "
                    "the visibility variable, or start the script with torchrun",
                    slot.name()));
  }
}

// Except pdsh, all ways of the deepspeed launcher to reach hosts start a rank for every slot in a hostfile, on a host's
// first devices. So a trial must take whole hosts.
void check_whole_hosts(SlotPlan& plan, const CommandTemplate& command) {
  if (plan.hostfile.empty() || !command.takes_whole_hosts(plan.slots)) return;
  const std::string launcher = command.multinode_launcher();
  const bool is_pdsh = launcher == kPdsh;  // then a host names a user
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format(
        "{} starts a rank for every slot of a host, and {}: {}, or give trials whole hosts with --num-gpus and "
        "--num-nodes",
        is_pdsh ? "deepspeed, whose --include cannot name USER@HOST," : "--launcher " + launcher, why,
        is_pdsh ? "move the users to ~/.ssh/config" : "leave the launcher at pdsh"));
  };
  std::map<std::string, int> next;
  for (const Slot& slot : plan.slots) {
    if (slot.ordinal != next[slot.host]++) refuse(fmt::format("{} is left while an earlier slot is not", slot.name()));
  }
  for (const TrialShape& shape : plan.shapes()) {
    const auto [least, most] = std::minmax_element(shape.node_slots.begin(), shape.node_slots.end());
    if (!is_pdsh && launcher != "openmpi" && launcher != "slurm" && *least != *most) {
      refuse(fmt::format("as many on each, but a trial takes {} of one host and {} of another", *most, *least));
    }
    if (shape.slots() == static_cast<int>(plan.slots.size())) continue;
    // srun chooses the hosts itself.
    if (launcher == "slurm") refuse(fmt::format("a trial takes {} slots of {}", shape.slots(), plan.slots.size()));
    for (const auto& [host, count] : next) {
      if (count > *least) refuse(fmt::format("a trial may take {} of the {} slots of {}", *least, count, host));
    }
  }
  if (launcher != "mvapich" || plan.at_once < 2) return;
  plan.at_once = 1;
  plan.notices.emplace_back("trials run one at a time: --launcher mvapich keeps the hosts of all trials in one file");
}

// A step of srun has the same number of tasks on each node. In a step the deepspeed launcher uses the first devices of
// each node, even if the trial has others.
void check_steps(SlotPlan& plan, const CommandTemplate& command) {
  const auto hosts = SlotPool(plan.slots, std::nullopt).hosts();
  for (const TrialShape& shape : plan.shapes()) {
    const auto ends = std::minmax_element(shape.node_slots.begin(), shape.node_slots.end());
    const auto least = *ends.first, most = *ends.second;
    if (least != most) {
      throw Error(
          fmt::format("a trial would take {} slots of one node of the allocation and {} of another, but a step "
                      "has the same number on each: give --num-nodes and --num-gpus",
                      most, least));
    }
    const bool is_part = std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return host.second > least; });
    if (command.launcher() != Launcher::deepspeed || shape.nodes() < 2 || !is_part || plan.at_once < 2) continue;
    plan.at_once = 1;
    plan.notices.emplace_back(
        "trials run one at a time: in an allocation the deepspeed launcher takes the first devices of every node; give "
        "trials whole nodes, or start them with torchrun");
  }
}

// Parallel trials would use the same port, or the same devices, because the launcher counts devices itself.
void run_one_at_a_time(const CommandTemplate& command, SlotPlan& plan) {
  if (plan.at_once < 2) return;
  std::string reason;
  if (const std::string place = command.launcher_out_of_reach(); !place.empty()) {
    reason = fmt::format(
        "the launcher in {} cannot be given a trial's port and devices; write it in the command itself, "
        "or leave devices out there and pass it $MASTER_PORT",
        place);
  } else if (const std::string starter = command.starts_ranks_at_one_port(); !starter.empty()) {
    reason = fmt::format(
        "under {} DeepSpeed uses port 29500 in every trial; start the script with deepspeed or "
        "torchrun, or give deepspeed.init_distributed the trial's MASTER_PORT as distributed_port",
        starter);
  }
  if (reason.empty() && command.fixes_port()) {
    reason =
        "the script sets MASTER_PORT itself, the same in every trial; let it keep a given one, as in "
        "os.environ.setdefault(\"MASTER_PORT\", ...)";
  }
  if (const std::string variable = command.own_visibility(); reason.empty() && !variable.empty()) {
    reason = fmt::format(
        "the command sets {} itself, the same in every trial; set it before dsat-host, which divides "
        "its devices",
        variable);
  }
  if (reason.empty()) return;
  plan.at_once = 1;
  plan.notices.push_back("trials run one at a time: " + reason);
}

// A simulation has its own devices.
void use_simulated_slots(const SlotOptions& options, const Simulation& simulation, SlotRequest& request) {
  if (simulation.slots_are_all && options.slots.value_or(0) > simulation.slots) {
    throw Error(fmt::format("--slots {}, but the simulation has only {} devices", *options.slots, simulation.slots));
  }
  request.slots = options.slots.value_or(simulation.slots);
  if (!request.command_slots) request.command_slots = simulation.slots_per_trial;
}

void check_simulation(const SlotPlan& plan) {
  if (plan.hostfile.empty() && !plan.sizes_are_tuned()) return;
  throw Error("a simulation has one host and trials of one size: leave out the hostfile and lists of num_gpus");
}

// Whether a trial's size or its usable slots are not given by the command.
bool size_is_ours(const SlotOptions& options, const SlotRequest& request) {
  return options.slots || request.max_slots || options.slots_per_trial || !options.num_gpus.empty() ||
         !options.num_nodes.empty() || !options.hostfile.empty() || !request.section_gpus.empty() ||
         !request.section_nodes.empty() || !options.include.empty() || !options.exclude.empty();
}

}  // namespace

SlotPlan plan_study_slots(const Devices& devices, const StudyOptions& options,
                          const std::optional<CommandTemplate>& command, const fs::path& cwd, const Json& user_config,
                          const Environment& environment, ClusterOptions& cluster) {
  SlotRequest request;
  request.slots = options.slots;
  request.slots_per_trial = options.slots_per_trial;
  request.max_slots = options.max_slots;
  if (command) request.command_slots = command->slots_per_trial();
  if (command && cluster.runner == kLocalRunner && command->starts_one_process()) request.command_slots = 1;
  if (options.simulation) use_simulated_slots(options, *options.simulation, request);
  const LauncherResources launcher = command ? command->resources() : LauncherResources();
  const std::string notice = request_hosts(options, launcher, cwd, request);
  request_size(options, launcher, request);
  request.section_gpus = numbers_at(user_config, config::kNumGpusKey);
  request.section_nodes = numbers_at(user_config, config::kNumNodesKey);
  std::error_code error;
  const bool deepspeed = command && command->launcher() == Launcher::deepspeed;
  if (!options.simulation) request.given = runner_slots(request, command, environment, cluster);
  if (!request.given.empty()) {
    request.hostfile.clear();
    request.hostfile_text.reset();
  }
  const bool local = cluster.runner == kLocalRunner && !options.simulation;
  if (local && request.hostfile.empty() && launcher.hostfile.empty() && options.hostfile.empty() && deepspeed &&
      fs::is_regular_file(command->default_hostfile(), error)) {
    request.hostfile = command->default_hostfile();
  }
  Devices known = devices;
  if (!request.given.empty() && cluster.has_gpus) known.backend = Backend::cuda;
  SlotPlan plan = plan_slots(known, request);
  if (local && !notice.empty()) plan.notices.push_back(notice);
  // The slots of a job are placeholders; the number of jobs in the queue is the limit.
  if (cluster.runner == kSlurmRunner) plan.at_once = options.max_concurrent_trials;
  plan.size_is_ours = size_is_ours(options, request);
  plan.filtered = !request.include.empty() || !request.exclude.empty();
  if (options.simulation) {
    check_simulation(plan);
    plan.placements.clear();  // they name no real devices
  } else {
    check_command(plan, *command, cluster);
    if (cluster.runner == kLocalRunner) check_whole_hosts(plan, *command);
    if (cluster.runner == kPilotRunner) check_steps(plan, *command);
    // Slurm reserves each job's nodes or devices.
    if (cluster.runner != kSlurmRunner) run_one_at_a_time(*command, plan);
  }
  return plan;
}

}  // namespace dsat::host
