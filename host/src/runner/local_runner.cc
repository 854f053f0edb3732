#include "runner/local_runner.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "command/hyperparameters.h"
#include "dsat/base/units.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "runner/kernel_oom_count.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

// How dsat-launch is told to kill everything now; its SIGKILL would leave the tree without its guard.
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

// Does the folder hold a run of this very configuration? A journal that lost its last entries gives an id out again.
bool is_run_of(const fs::path& trial_dir, const TrialSpec& spec, const ProfileWindow& window) {
  try {
    return config::identity(config::load_file(trial_dir / kConfigFile)) ==
           config::identity(trial_config(spec, trial_dir, window));
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

LocalRunner::LocalRunner(Loop& loop, LocalRunnerOptions options)
    : loop_(loop), options_(std::move(options)), slots_(options_.slots, options_.max_slots) {}

LocalRunner::~LocalRunner() {
  for (auto& [id, trial] : running_) {
    for (const uint64_t timer : trial.timers) loop_.cancel(timer);
    trial.process->signal(kKillTree);
  }
  for (auto& [id, trial] : running_) trial.process->wait_for(kLastWait);
}

TrialShape LocalRunner::shape_of(const Json& config) const {
  const auto world = config::tuned_world(config);
  if (!world || !options_.sizes_are_tuned) return options_.shape;
  return TrialShape::even(static_cast<int>(world->num_nodes), static_cast<int>(world->num_gpus));
}

int LocalRunner::room() const {
  SlotPool left = slots_;
  int count = 0;
  while (left.take(options_.shape)) ++count;
  return count;
}

bool LocalRunner::has_room_for(const std::vector<const Json*>& configs) const {
  SlotPool left = slots_;
  return std::all_of(configs.begin(), configs.end(),
                     [&](const Json* config) { return left.take(shape_of(*config)).has_value(); });
}

Evidence LocalRunner::new_evidence(const TrialSpec& spec) const {
  Evidence evidence;
  evidence.id = spec.id;
  evidence.attempt = spec.attempt;
  evidence.config = spec.config;
  evidence.model_info = spec.model_info;
  evidence.end_profile_step = options_.window.end_step;
  evidence.trial_dir = trial_folder(options_.run_dir, spec.id);
  return evidence;
}

Status LocalRunner::start(const TrialSpec& spec) {
  if (running_.count(spec.id) != 0) return Status::internal("trial " + std::to_string(spec.id) + " is running already");
  auto slots = slots_.take(shape_of(spec.config));
  if (!slots) return Status::internal("trial " + std::to_string(spec.id) + " was started without a free slot");
  const auto port = ports_.acquire();
  if (!port.ok()) {
    slots_.give_back(*slots);
    return port.status();
  }

  Running& trial = running_[spec.id];
  trial.evidence = new_evidence(spec);
  trial.slots = std::move(*slots);
  trial.port = port.value();
  const Status status = launch(spec, trial);
  if (!status.ok()) {
    slots_.give_back(trial.slots);
    ports_.release(trial.port);
    running_.erase(spec.id);
    return status;
  }
  const uint64_t id = spec.id;
  trial.timers.push_back(loop_.at(loop_.now(), [this, id] { report_start(running_.at(id)); }));
  watch_limits(id, trial);
  return Status();
}

Status LocalRunner::launch(const TrialSpec& spec, Running& trial) {
  const fs::path& folder = trial.evidence.trial_dir;
  Status status = prepare_folder(options_.run_dir, spec);
  fs::path cwd = options_.cwd;
  if (status.ok() && options_.trial_cwd == TrialCwd::copy) {
    cwd = folder / kCwdFolder;
    status = copy_into(cwd, options_.cwd, options_.includes, options_.run_dir);
  }
  if (!status.ok()) return status;

  TrialContext context{folder / kConfigFile, folder, trial.slots, trial.port, spec.config};
  context.hostfile = options_.hostfile;
  context.backend = options_.backend;
  const Argv argv = options_.command.render(context);
  const Json config = trial_config(spec, folder, options_.window);
  Environment added = options_.variables;
  for (const std::string& own : trial_variables(spec, folder, trial.port, options_.backend, trial.slots)) {
    const size_t equals = own.find('=');
    set_variable(added, own.substr(0, equals), own.substr(equals + 1));
  }
  status = write_file_atomically(folder / kConfigFile, pretty(config), Durability::renamed);
  if (status.ok() && options_.hyperparameters.is_object()) {
    set_variable(added, kHyperparametersVariable, (folder / kHyperparametersFile).string());
    const Json own = trial_hyperparameters(options_.hyperparameters, config, folder / kConfigFile);
    status = write_file_atomically(folder / kHyperparametersFile, pretty(own), Durability::renamed);
  }
  if (status.ok())
    status = write_file_atomically(folder / kCommandFile, command_line(cwd, added, argv), Durability::renamed);
  if (!status.ok()) return status;

  SpawnOptions spawn;
  spawn.argv = {options_.launcher.string(), std::to_string(getpid())};
  spawn.argv.insert(spawn.argv.end(), argv.begin(), argv.end());
  spawn.environment = options_.environment;
  for (const std::string& variable : added) {
    const size_t equals = variable.find('=');
    set_variable(spawn.environment, variable.substr(0, equals), variable.substr(equals + 1));
  }
  spawn.cwd = cwd;
  spawn.stdout_file = folder / kStdoutFile;
  spawn.stderr_file = folder / kStderrFile;
  const std::optional<int> lock = lock_folder(folder);
  spawn.keep_fd = lock.value_or(-1);
  trial.oom_kills_before = count_oom_kills();
  trial.evidence.started_at = utc_now();
  auto process =
      Subprocess::spawn(loop_, spawn, [this, id = spec.id](const ExitStatus& exit) { handle_exit(id, exit); });
  if (lock) close(*lock);  // the launcher has it now
  if (!process.ok()) return process.status();
  trial.process = std::move(process).value();
  return Status();
}

void LocalRunner::report_start(Running& trial) {
  if (trial.start_reported) return;
  trial.start_reported = true;
  TrialStart start;
  start.id = trial.evidence.id;
  start.attempt = trial.evidence.attempt;
  for (const Slot& slot : trial.slots) start.slots.push_back(slot.name());
  start.started_at = trial.evidence.started_at;
  if (on_started) on_started(start);
}

void LocalRunner::watch_limits(uint64_t id, Running& trial) {
  const auto now = loop_.now();
  trial.last_progress = now;
  trial.progress = progress_mark(trial.evidence.trial_dir);
  trial.timers.push_back(loop_.at(now + options_.trial_timeout, [this, id] {
    time_out(id, "ran longer than " + format_duration(options_.trial_timeout) + " (--trial-timeout)");
  }));
  look_for_progress(id);
}

void LocalRunner::look_for_progress(uint64_t id) {
  Running& trial = running_.at(id);
  if (trial.ending) return;
  const auto now = loop_.now();
  const uint64_t progress = progress_mark(trial.evidence.trial_dir);
  if (progress != trial.progress) {
    trial.progress = progress;
    trial.last_progress = now;
  } else if (now - trial.last_progress >= options_.no_progress_timeout) {
    time_out(id,
             "no new output or file for " + format_duration(options_.no_progress_timeout) + " (--no-progress-timeout)");
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
  trial.evidence.timed_out = std::move(reason);
  end_tree(id, trial, false);
}

void LocalRunner::stop(uint64_t id, bool at_once) {
  const auto it = running_.find(id);
  if (it == running_.end() || it->second.process->has_ended()) return;
  Running& trial = it->second;
  if (trial.evidence.timed_out.empty()) trial.evidence.stopped = true;
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
  // Out of the map first: what is told of this end may start the next trial, with these slots.
  Running trial = std::move(running_.at(id));
  running_.erase(id);
  for (const uint64_t timer : trial.timers) loop_.cancel(timer);
  slots_.give_back(trial.slots);
  ports_.release(trial.port);

  trial.evidence.exit = exit;
  trial.evidence.ended_at = utc_now();
  const auto oom_kills = count_oom_kills();
  trial.evidence.kernel_oom_kills = oom_kills && trial.oom_kills_before && *oom_kills > *trial.oom_kills_before;
  TrialEnd end = classify(trial.evidence);
  const Status written = write_exit(trial.evidence, end);
  if (!written.ok()) end.warnings.push_back(written.message());
  report_start(trial);
  if (on_ended) on_ended(end);
}

std::optional<TrialEnd> LocalRunner::recover(const TrialSpec& spec) {
  const fs::path folder = trial_folder(options_.run_dir, spec.id);
  if (!is_run_of(folder, spec, options_.window) || !wait_until_unlocked(folder).ok()) return std::nullopt;
  Evidence evidence = new_evidence(spec);
  const auto known = read_exit(folder, spec);
  if (known) {
    evidence.exit = known->exit;
    evidence.timed_out = known->timed_out;
    evidence.stopped = known->stopped;
    evidence.kernel_oom_kills = known->kernel_oom_kills;
    evidence.ended_at = known->ended_at;
  } else {
    evidence.ended_at = modified_at(folder / (spec.model_info ? kModelInfoFile : kMetricsFile));
  }
  TrialEnd end = classify(evidence);
  if (end.outcome == Outcome::completed) return end;
  // Without exit.json nobody saw its end: the host died, and the trial with it, in the middle of anything.
  const bool ended_by_itself = known && end.outcome != Outcome::stopped && !end.infrastructure;
  return ended_by_itself ? std::optional<TrialEnd>(std::move(end)) : std::nullopt;
}

}  // namespace dsat::host
