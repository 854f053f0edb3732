// Prepares a trial's folder, starts dsat-launch in it, watches the time limits, and reads the trial's end when the
// whole process tree is gone.
#include "runner/local_runner.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "command/hyperparameters.h"
#include "dsat/base/files.h"
#include "dsat/base/units.h"
#include "dsat/config/json.h"
#include "runner/kernel_oom_count.h"
#include "runner/probe.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

// Makes dsat-launch kill everything now; SIGKILL to itself would leave the tree without its guard.
constexpr int kKillTree = SIGUSR1;

// A killed tree goes in milliseconds, unless a driver holds one of its processes.
constexpr std::chrono::seconds kLastWait{10};

std::string pretty(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string modified_at(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return utc_now();
  const auto since_epoch =
      std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
  return format_rfc3339(std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(since_epoch)));
}

void write_file(const fs::path& file, const std::string& text) {
  write_file_atomically(file, text, Durability::renamed);
}

// Sets "NAME=value" entries in `environment`, in place of those of the same name.
void set_variables(Environment& environment, const Environment& variables) {
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    set_variable(environment, variable.substr(0, equals), variable.substr(equals + 1));
  }
}

// Does the folder hold a run of this very configuration? A journal that lost its last entries gives an id out again.
bool is_run_of(const fs::path& trial_dir, const TrialSpec& spec, const TrialMeasurement& measurement) {
  try {
    return config::identity(config::load_file(trial_dir / kConfigFile)) ==
           config::identity(trial_config(spec, trial_dir, measurement));
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

LocalRunner::LocalRunner(Loop& loop, LocalRunnerOptions options)
    : loop_(loop), options_(std::move(options)), slots_(options_.slots.slots, options_.max_slots) {}

LocalRunner::~LocalRunner() {
  for (auto& [id, trial] : running_) {
    for (const uint64_t timer : trial.timers) loop_.cancel(timer);
    trial.process->signal(kKillTree);
  }
  for (auto& [id, trial] : running_) trial.process->wait_for(kLastWait);
}

bool LocalRunner::has_room_for(const std::vector<const Json*>& configs) const {
  SlotPool left = slots_;
  return std::all_of(configs.begin(), configs.end(),
                     [&](const Json* config) { return left.take(options_.slots.shape_of(*config)).has_value(); });
}

RunFacts LocalRunner::facts_of(const TrialSpec& spec) const {
  RunFacts facts;
  facts.id = spec.id;
  facts.attempt = spec.attempt;
  facts.config = spec.config;
  facts.model_info = spec.model_info;
  facts.start_profile_step = options_.start_profile_step;
  facts.end_profile_step = options_.end_profile_step + spec.further_steps;
  facts.launcher = options_.command.launcher();
  facts.expects_rank_logs = options_.command.has_rank_logs();
  facts.on_processors = options_.slots.backend == Backend::none;
  facts.oom_patterns = options_.oom_patterns;
  facts.trial_dir = trial_folder(options_.run_dir, spec.id);
  return facts;
}

void LocalRunner::start(const TrialSpec& spec) {
  const uint64_t id = spec.id;
  if (running_.count(id) != 0) throw internal_error(fmt::format("trial {} is running already", id));
  auto slots = slots_.take(options_.slots.shape_of(spec.config));
  if (!slots) throw internal_error(fmt::format("trial {} was started without a free slot", id));

  Running& trial = running_[id];
  trial.facts = facts_of(spec);
  trial.slots = std::move(*slots);
  try {
    trial.port = ports_.acquire();
    launch(spec, trial);
  } catch (...) {
    release(trial);
    running_.erase(id);
    throw;
  }
  trial.timers.push_back(loop_.at(loop_.now(), [this, id] { report_start(running_.at(id)); }));
  watch_limits(id, trial);
}

void LocalRunner::release(const Running& trial) {
  slots_.give_back(trial.slots);
  ports_.release(trial.port);
}

fs::path LocalRunner::make_cwd(const fs::path& folder) const {
  if (options_.trial_cwd == TrialCwd::keep) return options_.cwd;
  copy_into(folder / kCwdFolder, options_.cwd, options_.includes, options_.run_dir);
  return folder / kCwdFolder;
}

// Writes what the trial reads and what people run again; returns the variables that the trial gets beside the study's
// environment.
Environment LocalRunner::prepare_files(const TrialSpec& spec, const Running& trial, const Argv& argv,
                                       const fs::path& cwd) const {
  const fs::path& folder = trial.facts.trial_dir;
  const Json config = trial_config(spec, folder, options_);
  Environment added = options_.variables;
  set_variables(added, trial_variables(spec, folder, trial.port, options_.slots.backend, trial.slots));
  write_file(folder / kConfigFile, pretty(config));
  if (options_.hyperparameters.is_object()) {
    set_variable(added, kHyperparametersVariable, (folder / kHyperparametersFile).string());
    const Json own = trial_hyperparameters(options_.hyperparameters, config, folder / kConfigFile);
    write_file(folder / kHyperparametersFile, pretty(own));
  }
  write_file(folder / kCommandFile, command_line(cwd, added, argv));
  return added;
}

void LocalRunner::launch(const TrialSpec& spec, Running& trial) {
  const fs::path& folder = trial.facts.trial_dir;
  prepare_folder(options_.run_dir, spec);
  SpawnOptions spawn;
  spawn.cwd = make_cwd(folder);
  const Argv argv = options_.command.render({folder / kConfigFile, folder, trial.slots, trial.port, spec.config,
                                             options_.slots.hostfile, options_.slots.backend});
  spawn.argv = {options_.launcher.string(), fmt::to_string(getpid())};
  spawn.argv.insert(spawn.argv.end(), argv.begin(), argv.end());
  spawn.environment = options_.environment;
  set_variables(spawn.environment, prepare_files(spec, trial, argv, spawn.cwd));
  // Not in cmd.txt: who runs that line again runs no trial.
  if (!options_.probe.empty()) add_probe(options_.probe, folder, spawn.environment);
  spawn.stdout_file = folder / kStdoutFile;
  spawn.stderr_file = folder / kStderrFile;
  const FolderLock lock(folder);  // the launcher inherits it
  spawn.keep_fd = lock.fd();
  trial.oom_kills_before = count_oom_kills();
  trial.facts.started_at = utc_now();
  trial.process =
      Subprocess::spawn(loop_, spawn, [this, id = spec.id](const ExitStatus& exit) { handle_exit(id, exit); });
}

void LocalRunner::report_start(Running& trial) {
  if (trial.start_reported) return;
  trial.start_reported = true;
  TrialStart start;
  start.id = trial.facts.id;
  start.attempt = trial.facts.attempt;
  for (const Slot& slot : trial.slots) start.slots.push_back(slot.name());
  start.started_at = trial.facts.started_at;
  if (on_started) on_started(start);
}

void LocalRunner::watch_limits(uint64_t id, Running& trial) {
  const auto now = loop_.now();
  trial.last_progress = now;
  trial.progress = progress_mark(trial.facts.trial_dir);
  // One that trains further has as much more time as it has more steps.
  const auto limit = options_.trial_timeout * (trial.facts.end_profile_step + 1) / (options_.end_profile_step + 1);
  trial.timers.push_back(loop_.at(now + limit, [this, id, limit] {
    time_out(id, fmt::format("ran longer than {} (--trial-timeout)", format_duration(limit)));
  }));
  look_for_progress(id);
}

void LocalRunner::look_for_progress(uint64_t id) {
  Running& trial = running_.at(id);
  if (trial.ending) return;
  const auto now = loop_.now();
  const uint64_t progress = progress_mark(trial.facts.trial_dir);
  if (progress != trial.progress) {
    trial.progress = progress;
    trial.last_progress = now;
  } else if (now - trial.last_progress >= options_.no_progress_timeout) {
    time_out(id, fmt::format("no new output or file for {} (--no-progress-timeout)",
                             format_duration(options_.no_progress_timeout)));
    return;
  }
  // Often enough to be off by a quarter at most, seldom enough to cost nothing.
  constexpr std::chrono::milliseconds kLongest{10000}, kShortest{5};
  const auto interval = std::clamp(options_.no_progress_timeout / 4, kShortest, kLongest);
  trial.timers.push_back(loop_.at(now + interval, [this, id] { look_for_progress(id); }));
}

void LocalRunner::time_out(uint64_t id, std::string reason) {
  Running& trial = running_.at(id);
  if (trial.ending || trial.process->has_ended()) return;
  trial.facts.timed_out = std::move(reason);
  end_tree(id, trial, false);
}

void LocalRunner::stop(uint64_t id, bool at_once) {
  const auto it = running_.find(id);
  if (it == running_.end() || it->second.process->has_ended()) return;
  Running& trial = it->second;
  if (trial.facts.timed_out.empty()) trial.facts.stopped = true;
  if (at_once || !trial.ending) end_tree(id, trial, at_once);
}

void LocalRunner::end_tree(uint64_t id, Running& trial, bool at_once) {
  trial.ending = true;
  trial.process->signal(at_once ? kKillTree : SIGTERM);
  if (at_once) return;
  trial.timers.push_back(
      loop_.at(loop_.now() + options_.term_grace, [this, id] { running_.at(id).process->signal(kKillTree); }));
}

void LocalRunner::handle_exit(uint64_t id, const ExitStatus& exit) {
  // Out of the map first: on_ended may start the next trial, with these slots.
  Running trial = std::move(running_.at(id));
  running_.erase(id);
  for (const uint64_t timer : trial.timers) loop_.cancel(timer);
  release(trial);

  trial.facts.exit = exit;
  trial.facts.ended_at = utc_now();
  const auto oom_kills = count_oom_kills();
  trial.facts.kernel_oom_kills = oom_kills && trial.oom_kills_before && *oom_kills > *trial.oom_kills_before;
  TrialEnd end = classify(trial.facts);
  try {
    write_exit(trial.facts, end);
  } catch (const Error& error) {
    end.warnings.emplace_back(error.what());
  }
  report_start(trial);
  if (on_ended) on_ended(end);
}

std::optional<TrialEnd> LocalRunner::recover(const TrialSpec& spec) {
  const fs::path folder = trial_folder(options_.run_dir, spec.id);
  if (!is_run_of(folder, spec, options_) || !wait_until_unlocked(folder)) return std::nullopt;
  RunFacts facts = facts_of(spec);
  const auto known = read_exit(folder, spec);
  if (known) {
    facts.exit = known->exit;
    facts.timed_out = known->timed_out;
    facts.stopped = known->stopped;
    facts.kernel_oom_kills = known->kernel_oom_kills;
    facts.ended_at = known->ended_at;
  } else {
    facts.ended_at = modified_at(folder / (spec.model_info ? kModelInfoFile : kMetricsFile));
  }
  TrialEnd end = classify(facts);
  if (end.outcome == Outcome::completed) return end;
  // Without exit.json no host saw its end: the host died, and the trial with it, at any point.
  const bool ended_by_itself = known && end.outcome != Outcome::stopped && !end.infrastructure;
  return ended_by_itself ? std::optional<TrialEnd>(std::move(end)) : std::nullopt;
}

}  // namespace dsat::host
