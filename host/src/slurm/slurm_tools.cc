// Writes each command's two streams to memory files, which are read after its end.
#include "slurm/slurm_tools.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/guarded.h"
#include "dsat/base/utf8.h"

namespace dsat::host {

namespace {

std::string read_and_close(int fd) {
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  for (off_t at = 0; (got = pread(fd, buffer, sizeof buffer, at)) > 0; at += got) {
    text.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

std::vector<std::string> with_path(std::vector<std::string> argv, const Environment& environment) {
  argv[0] = or_throw(find_program(argv[0], "/", environment)).string();
  return argv;
}

}  // namespace

std::string ToolOutput::last_word() const {
  std::vector<std::string> lines = printable_lines(err);
  if (lines.empty()) lines = printable_lines(out);
  return lines.empty() ? "it printed nothing" : lines.back();
}

Environment without_slurm_variables(const Environment& environment) {
  Environment kept;
  for (const std::string& variable : environment) {
    const std::string name = variable.substr(0, variable.find('='));
    const bool of_slurm = name.rfind("SLURM_", 0) == 0 || name.rfind("SLURMD_", 0) == 0 ||
                          name.rfind("SBATCH_", 0) == 0 || name.rfind("SRUN_", 0) == 0 ||
                          name.rfind("SQUEUE_", 0) == 0 || name.rfind("SCANCEL_", 0) == 0;
    const bool of_site = name == "SLURM_CONF" || name == "SLURM_CLUSTERS" || name == "SLURM_JWT";
    if (!of_slurm || of_site) kept.push_back(variable);
  }
  return kept;
}

SlurmTools::SlurmTools(Loop& loop, Environment environment) : loop_(loop), environment_(std::move(environment)) {
  set_variable(environment_, "LC_ALL", "C");  // states and messages are parsed
}

SlurmTools::~SlurmTools() {
  for (auto& [number, run] : runs_) {
    loop_.cancel(run.timer);
    close(run.out);
    close(run.err);
  }
}

void SlurmTools::run(const std::vector<std::string>& argv, Callback callback, std::chrono::milliseconds patience) {
  const uint64_t number = next_++;
  Run& run = runs_[number];
  run.callback = std::move(callback);
  run.out = memfd_create("dsat-slurm", MFD_CLOEXEC);
  run.err = memfd_create("dsat-slurm", MFD_CLOEXEC);
  try {
    SpawnOptions spawn;
    spawn.argv = with_path(argv, environment_);
    spawn.environment = environment_;
    spawn.stdout_fd = run.out;
    spawn.stderr_fd = run.err;
    run.process = Subprocess::spawn(loop_, spawn, [this, number](const ExitStatus& exit) { finish(number, exit); });
    run.timer = loop_.at(loop_.now() + patience, [this, number] { runs_.at(number).process->signal(SIGKILL); });
  } catch (const Error& error) {
    const std::string reason = error.what();
    dprintf(run.err, "%s\n", reason.c_str());
    run.timer = loop_.at(loop_.now(), [this, number] { finish(number, ExitStatus{}); });
  }
}

void SlurmTools::finish(uint64_t number, const ExitStatus& exit) {
  Run run = std::move(runs_.at(number));
  runs_.erase(number);
  loop_.cancel(run.timer);
  ToolOutput output;
  output.ok = exit.code == 0;
  output.out = read_and_close(run.out);
  output.err = read_and_close(run.err);
  if (exit.signal == SIGKILL && output.err.empty()) output.err = "timed out: it did not answer";
  run.callback(output);
}

ToolOutput SlurmTools::run_now(const std::vector<std::string>& argv, const Environment& environment,
                               std::chrono::milliseconds patience) {
  Loop loop;
  std::optional<ToolOutput> result;
  SlurmTools tools(loop, environment);
  tools.run(
      argv, [&](const ToolOutput& output) { result = output; }, patience);
  while (!result) loop.run_once();
  return *result;
}

std::string file_pattern(const std::filesystem::path& file) {
  std::string text;
  for (const char c : file.string()) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

void require_slurm(const std::vector<std::string>& commands, const Environment& environment, const std::string& why) {
  for (const std::string& command : commands) {
    if (find_program(command, "/", environment).ok()) continue;
    throw Error(
        fmt::format("{} needs Slurm, and PATH has no {}: run dsat on a machine of the cluster (a login node), "
                    "or leave out --runner to run trials on this machine",
                    why, command));
  }
}

std::pair<int, int> parse_slurm_version(const std::string& text) {
  int major = 0, minor = 0;
  const size_t digit = text.find_first_of("0123456789");
  if (digit == std::string::npos || std::sscanf(text.c_str() + digit, "%d.%d", &major, &minor) != 2) return {0, 0};
  return {major, minor};
}

}  // namespace dsat::host
