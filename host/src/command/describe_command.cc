// Implements dsat/host/command.h: reads the launcher's flags and the configuration flag of a command.
#include "command/command_args.h"
#include "command/launchers.h"
#include "dsat/base/numbers.h"
#include "dsat/host/command.h"

namespace dsat::host {

std::optional<int> slots_of_command(const std::vector<std::string>& command) {
  const LauncherUse launcher = find_launcher(command);
  if (launcher.kind != Launcher::deepspeed) return command_slots(command, launcher);
  const auto count = [&](std::initializer_list<std::string_view> flags) {
    const auto text = launcher_value(command, launcher, flags);
    const std::optional<int> value = text ? parse_count(*text) : std::nullopt;
    return value && *value > 0 ? value : std::nullopt;
  };
  const std::optional<int> gpus = count({"--num_gpus", "--num_accelerators"});
  return gpus ? std::optional<int>(*gpus * count({"--num_nodes"}).value_or(1)) : std::nullopt;
}

std::string config_of_command(const std::vector<std::string>& command, const std::filesystem::path& cwd) {
  for (const FlagUse& use : find_flag(command, {"--deepspeed_config", "--deepspeed-config", "--deepspeed"})) {
    if (use.value >= command.size()) continue;
    const std::string value = use.read(command);
    std::error_code error;
    if (std::filesystem::path(value).extension() == ".json" || std::filesystem::is_regular_file(cwd / value, error)) {
      return value;
    }
  }
  return "";
}

}  // namespace dsat::host
