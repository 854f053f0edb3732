// Starts dsat-trial with posix_spawn or as a fork, its output in files of a folder of the test's own.
// Variables about ranks that a shell has set are kept from it.
#include "trial_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

extern char** environ;

namespace dsat::trainer::testing {
namespace {

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

// What a shell around the tests may have set for a training of its own.
bool is_about_ranks(const std::string& variable) {
  for (const char* name : {"RANK=", "WORLD_SIZE=", "MASTER_ADDR=", "MASTER_PORT=", "DSAT_"}) {
    if (variable.rfind(name, 0) == 0) return true;
  }
  return false;
}

struct OutputFiles {
  explicit OutputFiles(const std::filesystem::path& folder)
      : out(open_new(folder / "out.new")), err(open_new(folder / "err.new")) {}
  ~OutputFiles() {
    ::close(out);
    ::close(err);
  }
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  static int open_new(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    EXPECT_GE(file, 0) << path;
    return file;
  }
  int out, err;
};

pid_t spawn(std::vector<std::string> args, std::vector<std::string> variables, const OutputFiles& files) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, files.out, 1);
  posix_spawn_file_actions_adddup2(&actions, files.err, 2);
  args.insert(args.begin(), DSAT_TRIAL);
  pid_t pid = -1;
  const int failed =
      ::posix_spawn(&pid, DSAT_TRIAL, &actions, nullptr, pointers(args).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(failed, 0) << DSAT_TRIAL;
  return pid;
}

pid_t fork_into_entry(std::vector<std::string> args, std::vector<std::string> variables, const OutputFiles& files) {
  std::fflush(nullptr);  // or the child would write what is buffered once more
  const pid_t pid = ::fork();
  EXPECT_GE(pid, 0);
  if (pid != 0) return pid;
  ::dup2(files.out, 1);
  ::dup2(files.err, 2);
  std::vector<char*> pairs = pointers(variables);
  environ = pairs.data();
  std::exit(entry(args));
}

}  // namespace

std::string Ended::last_error_line() const {
  std::istringstream lines(err);
  std::string line, last;
  while (std::getline(lines, line)) last = line;
  return last;
}

TrialProgram::~TrialProgram() {
  for (const pid_t pid : running_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

void TrialProgram::write_config(Json config, int64_t start_step, int64_t end_step, bool model_info) {
  Json& tuning = config["autotuning"];
  tuning["enabled"] = true;
  tuning["start_profile_step"] = start_step;
  tuning["end_profile_step"] = end_step;
  tuning["metric_path"] = (folder() / "metrics.json").string();
  if (model_info) tuning["model_info"]["profile"] = true;
  if (model_info) tuning["model_info_path"] = (folder() / "metrics.json").string();
  write_raw_config(config.dump());
}

void TrialProgram::write_raw_config(const std::string& text) { write_text(folder() / "ds_config.json", text); }

Ended TrialProgram::run(const std::string& options, const std::vector<std::string>& environment) {
  return wait(start(options, environment));
}

pid_t TrialProgram::start(const std::string& options, const std::vector<std::string>& environment) {
  std::istringstream words(options);
  std::vector<std::string> args{std::istream_iterator<std::string>(words), {}};
  args.insert(args.end(), {"--deepspeed_config", (folder() / "ds_config.json").string()});
  std::vector<std::string> variables = environment;
  for (char** v = environ; *v != nullptr; ++v) {
    if (!is_about_ranks(*v)) variables.push_back(*v);
  }
  // The files are found again by the process id.
  const OutputFiles files(folder());
  const bool forks = entry != nullptr && environment.empty();
  const pid_t pid = (forks ? fork_into_entry : spawn)(std::move(args), std::move(variables), files);
  std::filesystem::rename(folder() / "out.new", folder() / ("out." + std::to_string(pid)));
  std::filesystem::rename(folder() / "err.new", folder() / ("err." + std::to_string(pid)));
  running_.push_back(pid);
  return pid;
}

Ended TrialProgram::wait(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  running_.erase(std::remove(running_.begin(), running_.end(), pid), running_.end());
  Ended ended;
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  ended.out = read_text(folder() / ("out." + std::to_string(pid)));
  ended.err = read_text(folder() / ("err." + std::to_string(pid)));
  return ended;
}

std::string TrialProgram::output_of(pid_t pid) const { return read_text(folder() / ("out." + std::to_string(pid))); }

std::optional<Json> TrialProgram::result() const {
  if (!std::filesystem::exists(folder() / "metrics.json")) return std::nullopt;
  return Json::parse(read_text(folder() / "metrics.json"));
}

Json measure(const std::string& options, const Json& config, int64_t start_step, int64_t end_step) {
  TrialProgram program;
  program.write_config(config, start_step, end_step);
  const Ended ended = program.run(options);
  EXPECT_EQ(ended.status, 0) << ended.err;
  const std::optional<Json> result = program.result();
  EXPECT_TRUE(result.has_value()) << options << " " << config.dump();
  return result.value_or(nullptr);
}

void expect_refused(const BadInput& input) {
  TrialProgram program;
  program.write_raw_config(input.config);
  const Ended ended = program.run(input.options);
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find(input.says), std::string::npos) << ended.err;
  EXPECT_EQ(ended.err, ended.last_error_line() + "\n");
  EXPECT_EQ(ended.out, "");
}

std::vector<pid_t> children_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  return {std::istream_iterator<pid_t>(in), std::istream_iterator<pid_t>()};
}

bool is_running(pid_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.compare(name_end + 2, 1, "Z") != 0;
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 5);  // no call waits for another process's children
  }
  return true;
}

}  // namespace dsat::trainer::testing
