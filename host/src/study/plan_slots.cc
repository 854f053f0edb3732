#include "study/plan_slots.h"

#include <system_error>

#include "dsat/config/json.h"
#include "dsat/config/world.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

// Where the deepspeed launcher looks by itself.
constexpr const char* kDefaultHostfile = "/job/hostfile";

// A number or a list of numbers of the autotuning section; DeepSpeed reads null and "auto" as not given.
std::vector<int> numbers_at(const Json& config, const char* key) {
  const Json* value = config::find(config, key);
  if (value == nullptr || value->is_null() || *value == "auto") return {};
  const Json list = value->is_array() ? *value : Json::array({*value});
  std::vector<int> numbers;
  for (const Json& element : list) {
    constexpr int kMost = 1 << 20;
    if (!element.is_number_integer() || element.get<int64_t>() < 1 || element.get<int64_t>() > kMost) {
      throw Error(std::string(key) + " is " + value->dump() + ": it must be a number of at least 1, or a list of them");
    }
    numbers.push_back(element.get<int>());
  }
  if (numbers.empty()) throw Error(std::string(key) + " is an empty list: name at least one number");
  return numbers;
}

Status twice(const std::string& option, const std::string& here, const std::string& there) {
  return Status::invalid(option + " is given to dsat-host (" + here + ") and to the deepspeed launcher (" + there +
                         "): keep one");
}

// Hosts, and which of their slots.
Status say_where(const StudyOptions& options, const LauncherResources& launcher, const fs::path& cwd,
                 SlotRequest& request) {
  const std::string hostfile = options.hostfile.string();
  if (!hostfile.empty() && !launcher.hostfile.empty()) return twice("--hostfile", hostfile, launcher.hostfile);
  if (!options.include.empty() && !launcher.include.empty()) {
    return twice("--include", options.include, launcher.include);
  }
  if (!options.exclude.empty() && !launcher.exclude.empty()) {
    return twice("--exclude", options.exclude, launcher.exclude);
  }
  request.include = options.include + launcher.include;
  request.exclude = options.exclude + launcher.exclude;
  if (const std::string named = hostfile + launcher.hostfile; !named.empty()) request.hostfile = cwd / named;
  return Status();
}

// GPUs and nodes, as options or as the launcher's own flags.
void say_size(const StudyOptions& options, const LauncherResources& launcher, SlotRequest& request) {
  const auto positive = [](const std::optional<int>& count) {
    return count && *count > 0 ? std::vector<int>{*count} : std::vector<int>();
  };
  request.num_gpus = options.num_gpus.empty() ? positive(launcher.num_gpus) : options.num_gpus;
  request.num_nodes = options.num_nodes.empty() ? positive(launcher.num_nodes) : options.num_nodes;
  // --slots-per-trial is an option's word over the launcher's.
  if (!options.slots_per_trial || !options.num_gpus.empty() || !options.num_nodes.empty()) return;
  request.num_gpus.clear();
  request.num_nodes.clear();
}

// A size that the command cannot be told would not be that of any trial.
Status check_command(const SlotPlan& plan, const CommandTemplate& command) {
  const bool deepspeed = command.launcher() == Launcher::deepspeed;
  if (!plan.hostfile.empty() && !deepspeed) {
    return Status::invalid("hostfile " + plan.hostfile.string() +
                           ": its hosts are reached by the deepspeed launcher, and the command starts another program: "
                           "write deepspeed before the script, or drop the hostfile");
  }
  if (plan.sizes_are_tuned() && !command.takes_a_size()) {
    return Status::invalid(
        "num_gpus lists several sizes, but the command takes none: start the script with deepspeed, torchrun or "
        "accelerate launch, or write --num_gpus N where it takes the number");
  }
  for (const Slot& slot : plan.slots) {
    if (!deepspeed || slot.ordinal) continue;
    return Status::invalid("slot " + slot.name() +
                           " has no index, and the deepspeed launcher takes nothing else: name whole devices in the "
                           "visibility variable, or start the script with torchrun");
  }
  return Status();
}

// A simulation has devices of its own.
Status use_simulated_slots(const StudyOptions& options, SlotRequest& request) {
  const bool too_many = options.slots && *options.slots > options.simulation->slots;
  if (too_many && options.simulation->slots_are_all) {
    return Status::invalid("--slots " + std::to_string(*options.slots) + ", but the simulation has only " +
                           std::to_string(options.simulation->slots) + " devices");
  }
  request.slots = options.slots.value_or(options.simulation->slots);
  if (!request.command_slots) request.command_slots = options.simulation->slots_per_trial;
  return Status();
}

Status check_simulation(const SlotPlan& plan) {
  if (plan.hostfile.empty() && !plan.sizes_are_tuned()) return Status();
  return Status::invalid(
      "a simulation has one host and trials of one size: leave out the hostfile and lists of num_gpus");
}

}  // namespace

Result<SlotPlan> plan_study_slots(const Devices& devices, const StudyOptions& options,
                                  const std::optional<CommandTemplate>& command, const fs::path& cwd,
                                  const Json& user_config) {
  SlotRequest request;
  request.slots = options.slots;
  request.slots_per_trial = options.slots_per_trial;
  request.max_slots = options.max_slots;
  if (command) request.command_slots = command->slots_per_trial();
  const LauncherResources launcher = command ? command->resources() : LauncherResources();
  Status status = options.simulation ? use_simulated_slots(options, request) : Status();
  if (!status.ok()) return status;
  status = say_where(options, launcher, cwd, request);
  if (!status.ok()) return status;
  say_size(options, launcher, request);
  request.section_gpus = numbers_at(user_config, config::kNumGpusKey);
  request.section_nodes = numbers_at(user_config, config::kNumNodesKey);
  std::error_code error;
  const bool deepspeed = command && command->launcher() == Launcher::deepspeed;
  if (request.hostfile.empty() && deepspeed && fs::is_regular_file(kDefaultHostfile, error)) {
    request.hostfile = kDefaultHostfile;
  }
  Result<SlotPlan> plan = plan_slots(devices, request);
  if (!plan.ok()) return plan.status();
  plan->size_is_ours = options.slots_per_trial || !options.num_gpus.empty() || !options.num_nodes.empty() ||
                       !options.hostfile.empty() || !request.section_gpus.empty() || !request.section_nodes.empty() ||
                       !options.include.empty() || !options.exclude.empty();
  plan->filtered = !request.include.empty() || !request.exclude.empty();
  status = options.simulation ? check_simulation(plan.value()) : check_command(plan.value(), *command);
  if (!status.ok()) return status;
  if (options.simulation) plan->placements.clear();  // nobody's devices
  return plan;
}

}  // namespace dsat::host
