// Runs ssh to all other hosts at once, to check that each sees the folders. The message depends on ssh's exit status
// and last line.
#include "runner/preflight.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <system_error>

#include "base/event_loop.h"
#include "base/guarded.h"
#include "base/subprocess.h"
#include "dsat/base/shell.h"
#include "dsat/base/units.h"
#include "dsat/base/utf8.h"
#include "dsat/error.h"
#include "slots/hostfile.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

// ssh's status for "no connection". Any other status is that of the remote command.
constexpr int kNoConnection = 255;

// The check of one host.
struct Probe {
  std::string host;
  int output = -1;
  std::unique_ptr<Subprocess> process;
  std::optional<ExitStatus> exit;
  std::string error{};  // why ssh could not be started

  Probe() = default;
  Probe(Probe&& other) = delete;
  ~Probe() {
    if (output >= 0) close(output);
  }
  std::string last_line() const {
    char buffer[4096];
    const ssize_t got = pread(output, buffer, sizeof buffer, 0);
    const auto lines = printable_lines(std::string_view(buffer, got > 0 ? static_cast<size_t>(got) : 0));
    return lines.empty() ? "" : lines.back();
  }
};

// Returns the program by which the deepspeed launcher reaches hosts.
std::string tool_of(const std::string& launcher) {
  if (launcher == "openmpi" || launcher == "mpich" || launcher == "impi") return "mpirun";
  if (launcher == "mvapich") return "mpiname";
  return launcher == "slurm" ? "srun" : "pdsh";
}

void check_tools(const PreflightRequest& request, const std::string& launcher, bool probes) {
  std::vector<std::string> tools{tool_of(launcher)};
  if (probes) tools.emplace_back("ssh");
  for (const std::string& tool : tools) {
    if (find_program(tool, request.cwd, request.environment).ok()) continue;
    throw Error(fmt::format(
        "hostfile {} names other hosts, and the deepspeed launcher reaches them with {}, which is not in PATH: "
        "install it{}",
        request.slots.hostfile.string(), tool,
        tool == "pdsh" ? ", or name another launcher in the command, as deepspeed --launcher openmpi" : ""));
  }
}

std::vector<std::string> hosts_to_reach(const SlotPlan& plan) {
  std::vector<std::string> hosts;
  for (const auto& [name, count] : SlotPool(plan.slots, std::nullopt).hosts()) {
    if (!name.empty() && !is_this_machine(name)) hosts.push_back(name);
  }
  return hosts;
}

// Returns the existing part of the path, because the run directory is made after this check.
fs::path existing_part(fs::path dir) {
  std::error_code error;
  while (!fs::exists(dir, error) && dir.has_parent_path() && dir != dir.parent_path()) dir = dir.parent_path();
  return dir;
}

std::vector<std::string> ssh_command(const PreflightRequest& request, const std::string& ssh, const std::string& host) {
  std::vector<std::string> argv{"/bin/sh",       "-c", "exec \"$@\" 2>&1", "sh", ssh, "-o",
                                "BatchMode=yes", "-o", "ConnectTimeout=10"};
  const LauncherUse& use = request.command.launcher_use();
  if (const auto port = launcher_value(request.command.argv(), use, {"--ssh_port"})) {
    argv.insert(argv.end(), {"-p", *port});
  }
  const std::string remote = "test -d " + shell_quote(request.cwd.string()) + " && test -d " +
                             shell_quote(existing_part(request.run_dir).string());
  argv.insert(argv.end(), {host, remote});
  return argv;
}

// Returns "" if the host is ready.
std::string trouble_of(const Probe& probe, const PreflightRequest& request) {
  if (!probe.error.empty()) return "cannot be checked: " + probe.error;
  if (!probe.exit) return "cannot be reached: ssh had no answer for " + format_duration(request.timeout);
  if (probe.exit->code == 0) return "";
  if (probe.exit->code == 1) {
    return fmt::format("does not see {} and the run directory's {}: put both on a file system that all hosts share",
                       request.cwd.string(), existing_part(request.run_dir).string());
  }
  const std::string line = probe.last_line();
  const std::string detail = line.empty() ? "" : ": " + line;
  if (probe.exit->code == kNoConnection) return "cannot be reached" + detail;
  return fmt::format("cannot be checked: ssh ended with status {}{}", probe.exit->code, detail);
}

std::string place_of(const SlotPlan& plan, const std::string& host) {
  try {
    for (const HostEntry& entry : read_hostfile(plan.hostfile, plan.hostfile_text)) {
      if (entry.name == host) return fmt::format("{}:{}", plan.hostfile.string(), entry.line);
    }
  } catch (const Error&) {
    // The file has changed since the plan was made, so the message names it without a line.
  }
  return plan.hostfile.string();
}

using Probes = std::vector<std::unique_ptr<Probe>>;

// Returns when every host has answered, or at the time limit.
Probes ask(const std::vector<std::string>& hosts, const PreflightRequest& request) {
  const std::string ssh = or_throw(find_program("ssh", request.cwd, request.environment)).string();
  Loop loop;
  bool late = false;
  size_t open = 0;
  loop.at(Loop::Clock::now() + request.timeout, [&] { late = true; });
  Probes probes;
  for (const std::string& host : hosts) {
    Probe& probe = *probes.emplace_back(std::make_unique<Probe>());
    probe.host = host;
    probe.output = memfd_create("dsat-ssh", MFD_CLOEXEC);
    SpawnOptions options;
    options.argv = ssh_command(request, ssh, host);
    options.environment = request.environment;
    options.stdout_fd = probe.output;
    try {
      probe.process = Subprocess::spawn(loop, options, [&probe, &open](const ExitStatus& exit) {
        probe.exit = exit;
        --open;
      });
      ++open;
    } catch (const Error& error) {
      probe.error = error.what();
    }
  }
  while (open > 0 && !late) loop.run_once();
  for (const auto& probe : probes) probe->process.reset();  // before the loop that watches the process
  return probes;
}

}  // namespace

void check_hosts(const PreflightRequest& request) {
  const std::vector<std::string> hosts = hosts_to_reach(request.slots);
  if (hosts.empty()) return;
  const LauncherUse& use = request.command.launcher_use();
  const std::string launcher = request.command.multinode_launcher();
  const bool probes = launcher != "slurm" && !launcher_switch(request.command.argv(), use, "--no_ssh_check");
  check_tools(request, launcher, probes);
  if (!probes) return;
  for (const auto& probe : ask(hosts, request)) {
    const std::string trouble = trouble_of(*probe, request);
    if (trouble.empty()) continue;
    throw Error(fmt::format("{}: host {} {}", place_of(request.slots, probe->host), probe->host, trouble));
  }
}

}  // namespace dsat::host
