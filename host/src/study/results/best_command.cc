// Renders the command for the best configuration: file names, batch flags, and the tuned size if the user's command
// does not name it.
#include "study/results/best_command.h"

#include <system_error>
#include <vector>

#include "variables/deepspeed_env.h"
#include "variables/hyperparameters.h"
#include "dsat/base/files.h"
#include "dsat/base/shell.h"
#include "runner/trial_files.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

// The folder that the full training runs in. Includes are beside the model's files only in a copy.
fs::path training_folder(const Plan& plan, bool writes) {
  if (plan.trial_cwd != TrialCwd::copy || plan.includes.empty()) return plan.cwd;
  const fs::path folder = plan.dir / kFullExperimentFolder;
  std::error_code error;
  if (fs::exists(folder, error) || !writes) return folder;
  // The copy gets its name when it is whole, since a host that dies in between leaves a part of it.
  fs::path copy = folder;
  copy += ".new";
  fs::remove_all(copy, error);
  try {
    copy_into(copy, plan.cwd, plan.includes, plan.dir);
    fs::rename(copy, folder);
    return folder;
  } catch (const std::exception&) {
    fs::remove_all(copy, error);
    return plan.cwd;
  }
}

// The files that the best command names beside the configuration.
void write_files(const fs::path& dir, const std::vector<CommandFile>& files) {
  for (const CommandFile& file : files) {
    if (try_read_file(dir / file.name).bytes == file.text) continue;
    try {
      write_file_atomically(dir / file.name, file.text, Durability::synced, Access::owner);
    } catch (const Error&) {  // the folder can only be read, but the command is still worth showing
    }
  }
}

// The deepspeed launcher takes the machine's first devices if it gets their number. It ignores visibility variables.
bool leaves_out_first_devices(const SlotPlan& plan) {
  if (plan.backend != Backend::cuda || !plan.hostfile.empty()) return false;
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    if (!slot.host.empty() || !slot.ordinal) return false;
    if (*slot.ordinal != static_cast<int>(i)) return true;
  }
  return false;
}

// The slots that the best command must name and the user's command does not.
std::optional<CommandTemplate::Size> size_to_name(const Plan& plan, const CommandTemplate& command,
                                                  const Json& config) {
  const bool is_ours = plan.slots.size_is_ours || plan.slots.sizes_are_tuned();
  if (!is_ours && !command.gets_a_count(plan.slots.backend)) return std::nullopt;
  CommandTemplate::Size size{plan.shape_of(config), plan.slots.hostfile};
  size.is_tuned = plan.slots.sizes_are_tuned();
  if (plan.slots.filtered || command.takes_whole_hosts(plan.slots.slots) || leaves_out_first_devices(plan.slots))
    size.slots = SlotPool(plan.slots.slots, std::nullopt).take(size.shape).value_or(size.slots);
  return size;
}

}  // namespace

std::string best_command(const Plan& plan, const CommandTemplate& command, const Json& config, bool writes) {
  const fs::path config_file = plan.dir / "best_ds_config.json";
  const auto size = size_to_name(plan, command, config);
  const Argv argv = command.render_best(config, config_file, size);
  if (writes) write_files(plan.dir, command.best_files(config, config_file, size));
  if (!plan.hyperparameters.is_object()) return shell_join(argv);
  Environment variables = plan.variables;
  set_variable(variables, "DSAT_DS_CONFIG", config_file.string());
  set_variable(variables, kHyperparametersVariable, (plan.dir / kBestHyperparametersFile).string());
  const fs::path folder = training_folder(plan, writes);
  if (!plan.slots.hostfile.empty() && command.needs_deepspeed_env()) {
    const std::string text = deepspeed_env(variables, current_environment(), folder);
    if (writes) write_files(plan.dir, {{"", kBestDeepSpeedEnvFile, text}});
    set_variable(variables, kDeepSpeedEnvVariable, (plan.dir / kBestDeepSpeedEnvFile).string());
  }
  return shell_command(folder.string(), variables, argv);
}

}  // namespace dsat::host
