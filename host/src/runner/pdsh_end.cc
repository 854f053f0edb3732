// Calls pdsh with the launcher's hosts, arguments and port, and pkill with a pattern for the begin of a launcher's
// command line. pdsh, ssh and shells that carry this line do not match the pattern.
#include "runner/pdsh_end.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command/launchers.h"
#include "dsat/base/shell.h"
#include "dsat/base/split.h"

namespace dsat::host {

namespace {

// pkill before procps 4 sees 4,096 bytes of a command line, and the hosts come before the port. A trial of more hosts
// is ended by the launcher.
constexpr size_t kMostHosts = 24;

}  // namespace

Argv pdsh_end_command(const Argv& argv, const std::vector<Slot>& slots, const Environment& environment) {
  const LauncherUse use = find_launcher(argv);
  const auto value = [&](const char* name) { return launcher_value(argv, use, {name}).value_or(""); };
  std::vector<std::string> hosts;
  for (const auto& [name, count] : SlotPool(slots, std::nullopt).hosts()) hosts.push_back(name);
  const std::string port = value("--master_port"), ssh_port = value("--ssh_port");
  const bool is_spread =
      hosts.size() <= kMostHosts && (hosts.size() > 1 || launcher_switch(argv, use, "--force_multi"));
  const bool is_by_pdsh = use.kind == Launcher::deepspeed && is_spread && multinode_launcher(argv, use) == kPdsh;
  if (!is_by_pdsh || port.empty() || hosts.front().empty()) return {};
  Argv command{"env", "PDSH_RCMD_TYPE=ssh"};
  if (!ssh_port.empty()) {
    const std::string before = get_variable(environment, "PDSH_SSH_ARGS_APPEND").value_or("");
    command.push_back(fmt::format("PDSH_SSH_ARGS_APPEND={} -p {}", before, ssh_port));
  }
  command.insert(command.end(), {"pdsh", "-w", fmt::format("{}", fmt::join(hosts, ","))});
  for (const std::string& word : split(value("--launcher_args"), ' ')) {
    if (!word.empty()) command.push_back(word);
  }
  const std::string own = fmt::format("^[^ ]+ -u -m deepspeed[.]launcher[.]launch .*--master_port={}( |$)", port);
  command.push_back("pkill -f " + shell_quote(own));
  return command;
}

}  // namespace dsat::host
