#include "runner/preflight.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/event_loop.h"
#include "base/printable_text.h"
#include "base/subprocess.h"
#include "dsat/base/units.h"
#include "slots/hostfile.h"

namespace dsat::host {

namespace {

namespace fs = std::filesystem;

// ssh's own status for "no connection"; any other is that of what ran on the host.
constexpr int kNoConnection = 255;

// What one host answered.
struct Probe {
  std::string host;
  int output = -1;
  std::unique_ptr<Subprocess> process;
  std::optional<ExitStatus> exit;
  std::string error{};  // ssh could not even be started

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

// The tool by which the deepspeed launcher reaches hosts, and how it is installed.
std::string tool_of(const std::string& launcher) {
  if (launcher == "openmpi" || launcher == "mpich" || launcher == "impi") return "mpirun";
  if (launcher == "mvapich") return "mpiname";
  return launcher == "slurm" ? "srun" : "pdsh";
}

Status check_tools(const PreflightRequest& request, const std::string& launcher, bool probes) {
  std::vector<std::string> tools{tool_of(launcher)};
  if (probes) tools.emplace_back("ssh");
  for (const std::string& tool : tools) {
    if (find_program(tool, request.cwd, request.environment).ok()) continue;
    return Status::invalid("hostfile " + request.slots.hostfile.string() +
                           " names other hosts, and the deepspeed launcher reaches them by " + tool +
                           ", which PATH does not have: install it" +
                           (tool == "pdsh" ? ", or name another launcher with --launcher" : ""));
  }
  return Status();
}

std::vector<std::string> hosts_to_reach(const SlotPlan& plan) {
  std::vector<std::string> hosts;
  for (const auto& [name, count] : SlotPool(plan.slots, std::nullopt).hosts()) {
    if (!name.empty() && !is_this_machine(name)) hosts.push_back(name);
  }
  return hosts;
}

// The run directory is made after this check.
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

// "" for a host that is ready.
std::string trouble_of(const Probe& probe, const PreflightRequest& request) {
  if (!probe.error.empty()) return "cannot be asked: " + probe.error;
  if (!probe.exit) return "cannot be reached: ssh had no answer for " + format_duration(request.timeout);
  if (probe.exit->code == 0) return "";
  const std::string said = probe.last_line();
  if (probe.exit->code == kNoConnection) return "cannot be reached" + (said.empty() ? "" : ": " + said);
  if (probe.exit->code == 1) {
    return "does not see " + request.cwd.string() + " and the run directory's " +
           existing_part(request.run_dir).string() + ": put both on a file system that all hosts share";
  }
  return "cannot be asked: ssh ended with status " + std::to_string(probe.exit->code) +
         (said.empty() ? "" : ": " + said);
}

std::string place_of(const SlotPlan& plan, const std::string& host) {
  const auto entries = read_hostfile(plan.hostfile);
  if (entries.ok()) {
    for (const HostEntry& entry : entries.value()) {
      if (entry.name == host) return plan.hostfile.string() + ":" + std::to_string(entry.line);
    }
  }
  return plan.hostfile.string();
}

}  // namespace

Status check_hosts(const PreflightRequest& request) {
  const std::vector<std::string> hosts = hosts_to_reach(request.slots);
  if (hosts.empty()) return Status();
  const LauncherUse& use = request.command.launcher_use();
  const std::string launcher = launcher_value(request.command.argv(), use, {"--launcher"}).value_or("pdsh");
  const bool probes = launcher != "slurm" && !launcher_switch(request.command.argv(), use, "--no_ssh_check");
  const Status tools = check_tools(request, launcher, probes);
  if (!tools.ok() || !probes) return tools;
  const auto ssh = find_program("ssh", request.cwd, request.environment);

  Loop loop;
  bool late = false;
  size_t open = 0;
  loop.at(Loop::Clock::now() + request.timeout, [&] { late = true; });
  std::vector<std::unique_ptr<Probe>> running;
  for (const std::string& host : hosts) {
    auto& probe = *running.emplace_back(std::make_unique<Probe>());
    probe.host = host;
    probe.output = memfd_create("dsat-ssh", MFD_CLOEXEC);
    SpawnOptions options;
    options.argv = ssh_command(request, ssh.value().string(), host);
    options.environment = request.environment;
    options.stdout_fd = probe.output;
    auto process = Subprocess::spawn(loop, options, [&probe, &open](const ExitStatus& exit) {
      probe.exit = exit;
      --open;
    });
    if (!process.ok()) {
      probe.error = process.status().message();
      continue;
    }
    probe.process = std::move(process).value();
    ++open;
  }
  while (open > 0 && !late) loop.run_once();
  for (const auto& probe : running) {
    const std::string trouble = trouble_of(*probe, request);
    if (trouble.empty()) continue;
    return Status::invalid(place_of(request.slots, probe->host) + ": host " + probe->host + " " + trouble);
  }
  return Status();
}

}  // namespace dsat::host
