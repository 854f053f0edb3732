// Gives a trial's launcher its port, its slots and the number of processes. The command's own options for these are
// removed, and the trial's options are inserted after the launcher's name.
#include <fmt/format.h>

#include <algorithm>

#include "command/command_template.h"
#include "command/environment_use.h"
#include "command/own_launchers.h"
#include "command/wrappers.h"
#include "dsat/base/numbers.h"
#include "dsat/config/world.h"
#include "slots/hostfile.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

// accelerate's option for several machines; with `standard` it starts ranks on each machine as torchrun does.
constexpr const char* kMultinodeLauncher = "deepspeed_multinode_launcher";
constexpr const char* kStandardLauncher = "standard";
constexpr const char* kDeepSpeedRankLogs = "--enable_each_rank_log";

bool writes_rank_logs(const Argv& argv, const LauncherUse& launcher) {
  switch (launcher.kind) {
    case Launcher::deepspeed:
      return launcher_value(argv, launcher, {kDeepSpeedRankLogs}).value_or("None") !=
             "None";  // deepspeed writes "None" for no
    case Launcher::torchrun:
      return !launcher_flags(argv, launcher, {"-r", "--redirects", "-t", "--tee"}).empty();
    case Launcher::accelerate:
      return !launcher_flags(argv, launcher, {"--tee"}).empty();
    case Launcher::none:
      return false;
  }
  return false;
}

// The launcher removes CUDA_VISIBLE_DEVICES from the environment, but not ROCm's variables. With ROCm's variables it
// sees only the trial's devices and counts them from 0.
std::vector<Slot> as_launcher_counts(std::vector<Slot> slots, Backend backend) {
  if (backend != Backend::hip && backend != Backend::rocr) return slots;
  for (size_t i = 0; i < slots.size(); ++i) slots[i].ordinal = static_cast<int>(i);
  return slots;
}

// Returns a hostfile with the trial's hosts and its slots on each.
std::string hostfile_of(const std::vector<Slot>& slots) {
  std::string text;
  for (const auto& [name, count] : SlotPool(slots, std::nullopt).hosts())
    text += fmt::format("{} slots={}\n", name, count);
  return text;
}

bool any_names_a_user(const std::vector<Slot>& slots) {
  return std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return names_a_user(slot.host); });
}

// Returns worker-1:0,1@worker-2:0,1 for `deepspeed --include`. The launcher counts a host's devices from 0, whatever
// their names in the visibility variable.
std::string include_argument(const std::vector<Slot>& slots) {
  std::string text;
  const std::string* host = nullptr;
  for (const Slot& slot : slots) {
    const bool same = host != nullptr && *host == slot.host;
    if (!same) text += fmt::format("{}{}", host != nullptr ? "@" : "", slot.host.empty() ? "localhost" : slot.host);
    text += (same ? "," : ":") + (slot.ordinal ? fmt::to_string(*slot.ordinal) : slot.id);
    host = &slot.host;
  }
  return text;
}

// Inserts `inserted` after the launcher and removes the launcher's own options of these names.
Argv replaced(const Argv& argv, const LauncherUse& launcher, std::initializer_list<std::string_view> names,
              const Argv& inserted) {
  const std::vector<size_t> dropped = launcher_tokens(argv, launcher, names);
  Argv result(argv.begin(), argv.begin() + static_cast<std::ptrdiff_t>(launcher.begin));
  result.insert(result.end(), inserted.begin(), inserted.end());
  for (size_t i = launcher.begin; i < argv.size(); ++i) {
    if (std::find(dropped.begin(), dropped.end(), i) == dropped.end()) result.push_back(argv[i]);
  }
  return result;
}

// The files with each rank's output go to the trial's folder, since one folder for all trials would mix them up.
Argv with_rank_logs(Argv argv, const TrialContext& trial) {
  const LauncherUse launcher = find_launcher(argv);
  if (!writes_rank_logs(argv, launcher)) return argv;
  const std::string folder = (trial.trial_dir / kRankLogFolder).string();
  if (launcher.kind == Launcher::deepspeed) {
    return replaced(argv, launcher, {kDeepSpeedRankLogs}, {kDeepSpeedRankLogs, folder});
  }
  return replaced(argv, launcher, {"--log_dir", "--log-dir"}, {"--log_dir", folder});
}

// Under a scheduler the launcher uses the devices in the visibility variable, or all nodes of the hostfile.
Argv for_deepspeed_in_allocation(const Argv& argv, const LauncherUse& launcher, const TrialContext& trial,
                                 const Argv& no_hostfile) {
  Argv inserted = no_hostfile;
  if (!trial.hostfile.empty()) inserted = {"--hostfile", trial.hostfile.string()};
  inserted.insert(inserted.begin(), {"--master_port", fmt::to_string(trial.port)});
  return replaced(argv, launcher,
                  {"--num_gpus", "--num_accelerators", "--num_nodes", "--include", "-i", "--exclude", "-e",
                   "--master_port", "--hostfile", "-H", "--master_addr"},
                  inserted);
}

Argv for_deepspeed(const Argv& argv, const LauncherUse& launcher, const TrialContext& trial, const Argv& no_hostfile) {
  const bool whole_nodes = trial.allocation_nodes > 1;
  if (whole_nodes || trial.has_bound_devices) return for_deepspeed_in_allocation(argv, launcher, trial, no_hostfile);
  // The launcher ignores MASTER_PORT. It also ignores CUDA_VISIBLE_DEVICES if it is given a number of devices.
  Argv inserted{"--master_port", fmt::to_string(trial.port)};
  if (trial.hostfile.empty()) {
    inserted.insert(inserted.end(), no_hostfile.begin(), no_hostfile.end());
    inserted.insert(inserted.end(), {"--include", include_argument(as_launcher_counts(trial.slots, trial.backend))});
    return replaced(argv, launcher,
                    {"--num_gpus", "--num_accelerators", "--num_nodes", "--include", "-i", "--exclude", "-e",
                     "--master_port", "--hostfile", "-H"},
                    inserted);
  }
  inserted.insert(inserted.end(), {"--hostfile", trial.hostfile.string()});
  if (multinode_launcher(argv, launcher) == kPdsh && !any_names_a_user(trial.slots)) {
    inserted.insert(inserted.end(), {"--include", include_argument(trial.slots)});
  }
  const bool one_host = std::all_of(trial.slots.begin(), trial.slots.end(),
                                    [&](const Slot& slot) { return slot.host == trial.slots.front().host; });
  // Without --force_multi the launcher starts the ranks of a single host here, even if that host is another machine.
  const bool forced = launcher_switch(argv, launcher, "--force_multi");
  if (one_host && !forced && !is_this_machine(trial.slots.front().host)) inserted.push_back("--force_multi");
  // The command's --master_addr is removed, so that the launcher asks the trial's first host for its address.
  return replaced(argv, launcher,
                  {"--num_gpus", "--num_accelerators", "--num_nodes", "--include", "-i", "--exclude", "-e",
                   "--master_port", "--hostfile", "-H", "--master_addr"},
                  inserted);
}

// Starts one torchrun on each node. They meet on the first node, whose name is known only when the script runs.
Argv for_torchrun_on_nodes(const Argv& argv, const LauncherUse& launcher, const TrialContext& trial) {
  const auto nodes = static_cast<size_t>(trial.allocation_nodes);
  return replaced(argv, launcher,
                  {"--nnodes", "--node_rank", "--node-rank", "--master_addr", "--master-addr", "--master_port",
                   "--master-port", "--rdzv_backend", "--rdzv-backend", "--rdzv_endpoint", "--rdzv-endpoint",
                   "--rdzv_id", "--rdzv-id", "--nproc_per_node", "--nproc-per-node", "--standalone"},
                  {"--nnodes", fmt::to_string(nodes), "--nproc_per_node", fmt::to_string(trial.slots.size() / nodes),
                   "--rdzv_backend", "c10d", "--rdzv_endpoint", fmt::format("{{first_node}}:{}", trial.port),
                   "--rdzv_id", fmt::to_string(trial.port)});
}

// Sets where a trial's ranks meet. c10d without an endpoint uses port 29400 for all trials of this machine, and so did
// --standalone before torch 2.1. An etcd server is kept, since it separates trials by name.
std::string rendezvous(const std::string& backend, const std::string& given, uint16_t port) {
  if (backend != "c10d" && backend != "static") return given;
  return fmt::format("{}:{}", given.empty() ? "localhost" : given.substr(0, given.rfind(':')), port);
}

Argv for_torchrun(const Argv& argv, const LauncherUse& launcher, const TrialContext& trial) {
  if (trial.allocation_nodes > 1) return for_torchrun_on_nodes(argv, launcher, trial);
  const bool alone = launcher_switch(argv, launcher, "--standalone");
  const auto given = [&](std::initializer_list<std::string_view> names) {
    return alone ? "" : launcher_value(argv, launcher, names).value_or("");
  };
  std::string backend = given({"--rdzv_backend", "--rdzv-backend"});
  if (backend.empty()) backend = alone ? "c10d" : "static";
  const std::string endpoint = given({"--rdzv_endpoint", "--rdzv-endpoint"});
  const std::string port = fmt::to_string(trial.port);
  if (backend == "static" && endpoint.empty()) {
    return replaced(argv, launcher, {"--master_port", "--master-port"}, {"--master_port", port});
  }
  return replaced(argv, launcher,
                  {"--master_port", "--master-port", "--rdzv_backend", "--rdzv-backend", "--rdzv_endpoint",
                   "--rdzv-endpoint", "--rdzv_id", "--rdzv-id", "--standalone"},
                  {"--master_port", port, "--rdzv_backend", backend, "--rdzv_endpoint",
                   rendezvous(backend, endpoint, trial.port), "--rdzv_id", port});
}

bool accelerate_has_a_count(const Argv& argv, const LauncherUse& launcher) {
  return !launcher_flags(argv, launcher, {"--num_processes", "--num-processes"}).empty();
}

// Starts one accelerate on each node. They meet on the first node, where torch assigns the ranks.
Argv with_nodes(const Argv& argv, const TrialContext& trial) {
  return replaced(
      argv, find_launcher(argv),
      {"--num_machines", "--num-machines", "--machine_rank", "--machine-rank", "--main_process_ip", "--main-process-ip",
       "--rdzv_backend", "--rdzv-backend", "--same_network", "--same-network", "--deepspeed_multinode_launcher",
       "--deepspeed-multinode-launcher"},
      {"--num_machines", fmt::to_string(trial.allocation_nodes), "--machine_rank", "0", "--main_process_ip",
       "{first_node}", "--rdzv_backend", "c10d", fmt::format("--{}", kMultinodeLauncher), kStandardLauncher});
}

Argv for_accelerate(const Argv& argv, const LauncherUse& launcher, const TrialContext& trial) {
  const bool on_nodes = trial.allocation_nodes > 1;
  Argv inserted{"--main_process_port", fmt::to_string(trial.port)};
  // The settings file may name devices, which would have priority over the visibility variable. With ROCm's variable,
  // HIP counts the visible devices from 0.
  if (on_nodes || trial.has_bound_devices || trial.backend == Backend::rocr) {
    inserted.insert(inserted.end(), {"--gpu_ids", "all"});  // all visible devices
  } else if (visibility_variable(trial.backend) != nullptr) {
    inserted.insert(inserted.end(), {"--gpu_ids", id_list(trial.slots)});
  }
  // On one machine without accelerators, the settings file gives the number of processes.
  const bool is_ours = on_nodes || visibility_variable(trial.backend) != nullptr;
  if (is_ours && !accelerate_has_a_count(argv, launcher)) {
    inserted.insert(inserted.end(), {"--num_processes", fmt::to_string(trial.slots.size())});
  }
  Argv result =
      replaced(argv, launcher, {"--main_process_port", "--main-process-port", "--gpu_ids", "--gpu-ids"}, inserted);
  return on_nodes ? with_nodes(result, trial) : result;
}

struct Count {
  int per_node = 0, total = 0;
};

// Returns the number of processes to write into the command; nullopt: the command keeps its own.
std::optional<Count> count_of(const TrialContext& trial) {
  if (const auto world = config::tuned_world(trial.config)) {
    return Count{static_cast<int>(world->num_gpus), static_cast<int>(world->size())};
  }
  if (!trial.size_is_ours || trial.slots.empty()) return std::nullopt;
  const int total = static_cast<int>(trial.slots.size());
  return Count{total / std::max(trial.allocation_nodes, 1), total};
}

// Sets the number of processes if the command has one or its launcher accepts one.
Argv with_count(Argv argv, const LauncherUse& launcher, int per_node, int total) {
  if (launcher.kind == Launcher::torchrun) {
    return replaced(argv, launcher, {"--nproc_per_node", "--nproc-per-node"},
                    {"--nproc_per_node", fmt::to_string(per_node)});
  }
  if (launcher.kind == Launcher::accelerate) {
    return replaced(argv, launcher, {"--num_processes", "--num-processes"}, {"--num_processes", fmt::to_string(total)});
  }
  // A script's own option such as `--ranks 8,16` is no number of processes.
  const auto use = slots_flag(argv, launcher);
  if (use && parse_count(use->read(argv))) use->write(argv, fmt::to_string(total));
  return argv;
}

}  // namespace

LauncherResources CommandTemplate::resources() const {
  LauncherResources resources;
  if (launcher_.kind != Launcher::deepspeed) return resources;
  const Argv& argv = request_.argv;
  const auto text = [&](std::initializer_list<std::string_view> names) {
    return launcher_value(argv, launcher_, names).value_or("");
  };
  resources.hostfile = text({"--hostfile", "-H"});
  resources.include = text({"--include", "-i"});
  resources.exclude = text({"--exclude", "-e"});
  resources.num_gpus = parse_count(text({"--num_gpus", "--num_accelerators"}));
  resources.num_nodes = parse_count(text({"--num_nodes"}));
  return resources;
}

bool CommandTemplate::starts_one_process() const {
  return launcher_.kind == Launcher::torchrun && !launcher_.wrapper && !slots_flag(request_.argv, launcher_) &&
         launcher_flags(request_.argv, launcher_, {"--nnodes"}).empty();
}

bool CommandTemplate::gets_a_count(Backend backend) const {
  return launcher_.kind == Launcher::accelerate && visibility_variable(backend) != nullptr &&
         !accelerate_has_a_count(request_.argv, launcher_);
}

bool CommandTemplate::starts_lone_script() const {
  return launcher_.kind == Launcher::none && !launcher_.wrapper && starts_python(request_.argv);
}

std::string CommandTemplate::starts_ranks_at_one_port() const {
  const bool asks_mpi = launcher_.kind == Launcher::none && launcher_.wrapper && starts_python(request_.argv);
  return asks_mpi && !sets_port(request_.argv, request_.cwd) ? request_.argv[*launcher_.wrapper] : "";
}

bool CommandTemplate::has_rank_logs() const { return writes_rank_logs(request_.argv, launcher_); }

std::string CommandTemplate::multinode_launcher() const { return host::multinode_launcher(request_.argv, launcher_); }

bool CommandTemplate::takes_whole_hosts(const std::vector<Slot>& slots) const {
  return launcher_.kind == Launcher::deepspeed && (multinode_launcher() != kPdsh || any_names_a_user(slots));
}

std::vector<CommandFile> CommandTemplate::files(const TrialContext& trial) const {
  std::vector<CommandFile> files;
  SettingsChanges changes = changes_for_file(accelerate_settings_, trial.config_file, accelerate_config_);
  if (trial.allocation_nodes > 1 && accelerate_settings_.section.contains(kMultinodeLauncher)) {
    changes.emplace_back(fmt::format("deepspeed_config.{}", kMultinodeLauncher), kStandardLauncher);
  }
  const auto settings = changed_settings(accelerate_settings_, changes);
  if (settings) files.push_back({"--config_file", kAccelerateFile, *settings});
  add_training_yaml(trial.config, trial.config_file, false, files);
  // In an allocation the job's script writes the hostfile.
  if (takes_whole_hosts(trial.slots) && !trial.hostfile.empty() && trial.allocation_nodes == 0) {
    files.push_back({"--hostfile", kHostfile, hostfile_of(trial.slots)});
  }
  return files;
}

void CommandTemplate::add_training_yaml(const Json& config, const fs::path& config_file, bool is_best,
                                        std::vector<CommandFile>& files) const {
  if (!training_yaml_) return;
  const char* name = is_best ? training_yaml_->name_of_best() : training_yaml_->name_in_trial();
  files.push_back({"", name, with_configuration(*training_yaml_, config, config_file)});
}

std::vector<CommandFile> CommandTemplate::best_files(const Json& config, const fs::path& config_file,
                                                     const std::optional<Size>& size) const {
  std::vector<CommandFile> files;
  const auto settings =
      changed_settings(accelerate_settings_, changes_for_file(accelerate_settings_, config_file, accelerate_config_));
  if (settings) files.push_back({"--config_file", kBestAccelerateFile, *settings});
  add_training_yaml(config, config_file, true, files);
  if (size && takes_whole_hosts(size->slots) && !size->hostfile.empty()) {
    files.push_back({"--hostfile", kBestHostfile, hostfile_of(size->slots)});
  }
  return files;
}

// A trial on this machine names its host localhost, which the default hostfile does not. The launcher therefore gets a
// file that it treats as no hostfile.
Argv CommandTemplate::no_hostfile() const {
  std::error_code error;
  const bool is_read = fs::is_regular_file(request_.default_hostfile, error);
  return is_read ? Argv{"--hostfile", kNoHostfile} : Argv{};
}

void CommandTemplate::name_files(Argv& argv, const std::vector<CommandFile>& files, const fs::path& folder) {
  for (const CommandFile& file : files) {
    if (file.option.empty()) continue;
    argv = replaced(argv, find_launcher(argv),
                    {"--config_file", "--config-file", "--accelerate_config", "--hostfile", "-H"},
                    {file.option, (folder / file.name).string()});
  }
}

void CommandTemplate::apply_launcher(Argv& argv, const TrialContext& trial) const {
  switch (launcher_.kind) {
    case Launcher::deepspeed:
      argv = with_rank_logs(for_deepspeed(argv, launcher_, trial, no_hostfile()), trial);
      name_files(argv, files(trial), trial.trial_dir);
      return;
    case Launcher::torchrun:
      argv = with_rank_logs(for_torchrun(argv, launcher_, trial), trial);
      break;
    case Launcher::accelerate:
      name_config_of_accelerate(argv, trial.config_file);
      argv = with_rank_logs(for_accelerate(argv, find_launcher(argv), trial), trial);
      name_files(argv, files(trial), trial.trial_dir);
      break;
    case Launcher::none:
      apply_torchrun_variables(argv, trial.port, request_.environment);
      break;
  }
  const auto count = count_of(trial);
  if (!count || (!config::tuned_world(trial.config) && keeps_its_count(count->total))) return;
  const LauncherUse launcher = find_launcher(argv);
  argv = with_count(std::move(argv), launcher, count->per_node, count->total);
}

// Whether the command already asks for this total, or spreads its processes over nodes or tasks by itself.
bool CommandTemplate::keeps_its_count(int total) const {
  const std::optional<int> own = slots_per_trial();
  if (own == total) return true;
  const Argv& argv = request_.argv;
  if (launcher_.kind == Launcher::torchrun) return launcher_.wrapper || launcher_value(argv, launcher_, {"--nnodes"});
  if (launcher_.kind != Launcher::none || !launcher_.wrapper) return false;
  const auto use = slots_flag(argv, launcher_);
  const bool is_of_wrapper = use && use->value < end_of_wrapper_options(argv, *launcher_.wrapper);
  return !is_of_wrapper || (own == 1 && !starts_python(argv));  // one task may start all ranks itself
}

void CommandTemplate::apply_size(Argv& argv, const Size& size) const {
  const std::vector<int>& shares = size.shape.node_slots;
  if (launcher_.kind != Launcher::deepspeed) {
    if (!size.is_tuned && size.shape.nodes() == 1 && keeps_its_count(size.shape.slots())) return;
    argv = with_count(std::move(argv), launcher_, shares[0], size.shape.slots());
    if (launcher_.kind == Launcher::torchrun && size.shape.nodes() > 1) {
      argv = replaced(argv, find_launcher(argv), {"--nnodes"}, {"--nnodes", fmt::to_string(size.shape.nodes())});
    }
    return;
  }
  Argv inserted;
  if (!size.hostfile.empty()) inserted.insert(inserted.end(), {"--hostfile", size.hostfile.string()});
  // The launcher accepts numbers or a filter, not both.
  const bool even = std::all_of(shares.begin(), shares.end(), [&](int share) { return share == shares[0]; });
  const bool names_none = launcher_value(argv, launcher_, {"--hostfile", "-H"}).has_value();
  const bool is_here = size.hostfile.empty() && (shares.size() == 1 || !size.slots.empty() || names_none);
  if (is_here) inserted = no_hostfile();
  if (takes_whole_hosts(size.slots) && !size.hostfile.empty()) {
    // best_files writes a hostfile for this case
  } else if (!size.slots.empty() || !even) {
    if (!size.slots.empty()) inserted.insert(inserted.end(), {"--include", include_argument(size.slots)});
  } else {
    inserted.insert(inserted.end(), {"--num_gpus", fmt::to_string(shares[0])});
    const bool says_nodes = !size.hostfile.empty() || shares.size() > 1;
    if (says_nodes) inserted.insert(inserted.end(), {"--num_nodes", fmt::to_string(shares.size())});
  }
  argv = replaced(
      argv, launcher_,
      {"--num_gpus", "--num_accelerators", "--num_nodes", "--include", "-i", "--exclude", "-e", "--hostfile", "-H"},
      inserted);
}

}  // namespace dsat::host
