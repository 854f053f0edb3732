// Prepares a trial's folder, lets the engine start its processes, and classifies the trial after they have ended. The
// time limits are in trial_limits.cc.
#include "runner/trial_runner.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "command/environment_use.h"
#include "dsat/base/files.h"
#include "dsat/base/shell.h"
#include "dsat/config/json.h"
#include "runner/classify.h"
#include "runner/pdsh_end.h"
#include "runner/probe.h"
#include "runner/trial_inputs.h"
#include "runner/trial_script.h"
#include "variables/deepspeed_env.h"
#include "variables/hyperparameters.h"
#include "variables/injection.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

std::string pretty(const Json& json) { return config::text_of(json, 2) + "\n"; }

// Returns "" if there is no such file.
std::string modified_at(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return {};
  const auto since_epoch =
      std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
  return format_rfc3339(std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(since_epoch)));
}

void write_file(const fs::path& file, const std::string& text) {
  write_file_atomically(file, text, Durability::renamed, Access::owner);
}

// Sets "NAME=value" entries in `environment`, replacing those of the same name.
void set_variables(Environment& environment, const Environment& variables) {
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    set_variable(environment, variable.substr(0, equals), variable.substr(equals + 1));
  }
}

// Whether the folder holds a run of this configuration. A journal that lost its last entries may use an id again.
bool is_run_of(const fs::path& trial_dir, const TrialSpec& spec, const TrialRunnerOptions& options) {
  try {
    return config::identity(config::load_file(trial_dir / kConfigFile)) ==
           config::identity(as_script_takes_it(options.command.argv(), trial_config(spec, trial_dir, options)));
  } catch (const std::exception&) {
    return false;
  }
}

// Returns the start that the trial's script noted; empty: there is no note.
std::string noted_start(const fs::path& folder, uint32_t attempt) {
  const auto note = read_note(folder, kStartedFile, attempt);
  return note && parse_rfc3339(note->time) ? note->time : "";
}

// Returns the names in the hostfile. Empty: trials run only on this machine.
std::vector<std::string> hosts_of(const SlotPlan& plan) {
  std::vector<std::string> hosts;
  bool here = false;
  for (const Slot& slot : plan.slots) {
    here = here || slot.host.empty();
    if (!slot.host.empty() && std::find(hosts.begin(), hosts.end(), slot.host) == hosts.end())
      hosts.push_back(slot.host);
  }
  if (!here || hosts.empty()) return hosts;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  hosts.insert(hosts.end(), {name.data(), "localhost"});
  return hosts;
}

}  // namespace

TrialRunner::TrialRunner(Loop& loop, TrialRunnerOptions options, std::unique_ptr<Engine> engine)
    : loop_(loop), options_(std::move(options)), engine_(std::move(engine)) {
  engine_->on_running = [this](uint64_t id) { handle_start(id); };
  engine_->on_waiting = [this](uint64_t id) { handle_waiting(id); };
  engine_->on_ended = [this](uint64_t id, const EngineEnd& ended) { handle_end(id, ended); };
  engine_->on_notice = [this](const std::string& notice) {
    if (on_notice) on_notice(notice);
  };
  engine_->on_closing = [this](const std::string& reason) {
    if (on_closing) on_closing(reason);
  };
}

TrialRunner::~TrialRunner() {
  for (auto& [id, trial] : running_) cancel_timers(trial);
}

bool TrialRunner::has_room_for(const std::vector<const Json*>& configs) const {
  if (one_at_a_time_ && running_.size() + configs.size() > 1) return false;
  std::vector<TrialShape> shapes;
  for (const Json* config : configs) shapes.push_back(options_.slots.shape_of(*config));
  return engine_->has_room_for(shapes);
}

RunFacts TrialRunner::facts_of(const TrialSpec& spec) const {
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
  facts.loss_pattern = options_.loss_pattern;
  facts.grad_norm_pattern = options_.grad_norm_pattern;
  facts.metric_pattern = options_.metric_pattern;
  facts.has_configuration = options_.command.has_configuration();
  facts.python_package = options_.python_package;
  facts.hosts = hosts_of(options_.slots);
  facts.trial_dir = trial_folder(options_.run_dir, spec.id);
  facts.cwd = cwd_of(facts.trial_dir);
  return facts;
}

void TrialRunner::start(const TrialSpec& spec) {
  const uint64_t id = spec.id;
  if (running_.count(id) != 0) throw internal_error(fmt::format("trial {} is running already", id));
  auto slots = engine_->take(options_.slots.shape_of(spec.config));
  if (!slots) throw internal_error(fmt::format("trial {} was started without a free slot", id));

  LiveTrial& trial = running_[id];
  trial.facts = facts_of(spec);
  trial.slots = std::move(*slots);
  report_reuse(trial.slots);
  try {
    trial.port = trial.facts.port = ports_.acquire();
    launch(spec, trial);
  } catch (...) {
    release(trial);
    running_.erase(id);
    throw;
  }
}

void TrialRunner::release(const LiveTrial& trial) {
  engine_->give_back(trial.slots);
  ports_.release(trial.port);
}

fs::path TrialRunner::cwd_of(const fs::path& folder) const {
  return options_.trial_cwd == TrialCwd::keep ? options_.cwd : folder / kCwdFolder;
}

fs::path TrialRunner::make_cwd(const fs::path& folder) const {
  fs::path cwd = cwd_of(folder);
  if (options_.trial_cwd == TrialCwd::copy) copy_into(cwd, options_.cwd, options_.includes, options_.run_dir);
  return cwd;
}

// Writes the files that the trial reads and that people use to run it again. Returns the trial's variables, without
// those of the study's environment.
Environment TrialRunner::prepare_files(const TrialSpec& spec, const LiveTrial& trial, const Argv& argv,
                                       const fs::path& cwd, bool has_hostfile) const {
  const fs::path& folder = trial.facts.trial_dir;
  const Json config = as_script_takes_it(options_.command.argv(), trial_config(spec, folder, options_));
  Environment added = options_.variables;
  set_variables(added,
                trial_variables(spec, folder, trial.port, options_.slots.backend, trial.slots, options_.environment));
  if (trial.slots.size() == 1 && options_.slots.at_once > 1 && options_.command.starts_lone_script()) {
    Environment given = options_.environment;
    set_variables(given, options_.variables);
    set_variables(added, lone_rank(given));
  }
  write_file(folder / kConfigFile, pretty(config));
  if (options_.hyperparameters.is_object()) {
    set_variable(added, kHyperparametersVariable, (folder / kHyperparametersFile).string());
    const Json own = trial_hyperparameters(options_.hyperparameters, config, folder / kConfigFile);
    write_file(folder / kHyperparametersFile, pretty(own));
  }
  if (has_hostfile) {
    write_file(folder / kDeepSpeedEnvFile, deepspeed_env(added, options_.environment, cwd));
    set_variable(added, kDeepSpeedEnvVariable, (folder / kDeepSpeedEnvFile).string());
  }
  if (options_.inject) set_variable(added, kInjectVariable, (folder / kConfigFile).string());
  write_file(folder / kCommandFile, shell_command(cwd.string(), added, argv) + "\n");
  return added;
}

void TrialRunner::launch(const TrialSpec& spec, LiveTrial& trial) {
  prepare_folder(options_.run_dir, spec);
  const Launch launch = make_launch(spec, trial);
  trial.facts.started_at = utc_now();
  engine_->launch(launch);
}

// Writes the trial's files, except those that the engine writes.
Launch TrialRunner::make_launch(const TrialSpec& spec, const LiveTrial& trial) const {
  const fs::path& folder = trial.facts.trial_dir;
  Launch launch;
  launch.id = spec.id;
  launch.attempt = spec.attempt;
  launch.folder = folder;
  launch.cwd = make_cwd(folder);
  launch.slots = trial.slots;
  TrialContext context{folder / kConfigFile,  folder, trial.slots, trial.port, spec.config, options_.slots.hostfile,
                       options_.slots.backend};
  context.size_is_ours = options_.slots.size_is_ours;
  engine_->prepare(context);
  launch.argv = options_.command.render(context);
  for (const CommandFile& file : options_.command.files(context)) write_file(folder / file.name, file.text);
  launch.environment = options_.environment;
  const bool has_hostfile = !context.hostfile.empty() && options_.command.needs_deepspeed_env();
  set_variables(launch.environment, prepare_files(spec, trial, launch.argv, launch.cwd, has_hostfile));
  launch.end_command = pdsh_end_command(launch.argv, launch.slots, launch.environment);
  if (!options_.probe.empty()) add_probe(options_.probe, folder, !trial.facts.hosts.empty(), launch.environment);
  const std::set<std::string> shared(options_.environment.begin(), options_.environment.end());
  for (const std::string& variable : launch.environment) {
    if (shared.count(variable) == 0) launch.added.push_back(variable);
  }
  return launch;
}

// Takes over a trial that an earlier host started, in its folder and with its port.
bool TrialRunner::adopt(const TrialSpec& spec) {
  const uint64_t id = spec.id;
  const fs::path folder = trial_folder(options_.run_dir, id);
  if (!is_run_of(folder, spec, options_)) return false;
  auto slots = engine_->take(options_.slots.shape_of(spec.config));
  if (!slots) return false;
  Launch launch;
  launch.id = id;
  launch.attempt = spec.attempt;
  launch.folder = folder;
  launch.cwd = cwd_of(folder);
  launch.slots = *slots;
  LiveTrial& trial = running_[id];
  trial.facts = facts_of(spec);
  trial.facts.started_at = noted_start(folder, spec.attempt);
  trial.start_is_known = !trial.facts.started_at.empty();
  trial.slots = std::move(*slots);
  if (engine_->adopt(launch)) return true;
  release(trial);
  running_.erase(id);
  return false;
}

// The trial's limits start again when it runs again.
void TrialRunner::handle_waiting(uint64_t id) {
  LiveTrial& trial = running_.at(id);
  if (!trial.ending) cancel_timers(trial);
}

void TrialRunner::cancel_timers(LiveTrial& trial) {
  for (const uint64_t timer : trial.timers) loop_.cancel(timer);
  trial.timers.clear();
}

void TrialRunner::handle_start(uint64_t id) {
  LiveTrial& trial = running_.at(id);
  if (!trial.ending) cancel_timers(trial);  // a trial that was stopped before it started keeps its grace period
  if (!trial.start_is_known) trial.facts.started_at = utc_now();
  trial.start_is_known = true;
  report_start(trial);
  if (!trial.ending) watch_limits(id, trial);
}

void TrialRunner::report_start(LiveTrial& trial) {
  if (trial.start_reported) return;
  trial.start_reported = true;
  TrialStart start;
  start.id = trial.facts.id;
  start.attempt = trial.facts.attempt;
  for (const Slot& slot : trial.slots) start.slots.push_back(slot.name());
  start.started_at = trial.facts.started_at;
  if (on_started) on_started(start);
}

void TrialRunner::stop(uint64_t id, bool at_once) {
  const auto it = running_.find(id);
  if (it == running_.end() || engine_->has_ended(id)) return;
  LiveTrial& trial = it->second;
  if (trial.facts.timed_out.empty()) trial.facts.stopped = true;
  if (at_once || !trial.ending) end_processes(id, trial, at_once);
}

void TrialRunner::end_processes(uint64_t id, LiveTrial& trial, bool at_once) {
  trial.ending = true;
  engine_->stop(id, at_once);
  if (at_once) return;
  trial.timers.push_back(loop_.at(loop_.now() + options_.term_grace, [this, id] { engine_->stop(id, true); }));
}

void TrialRunner::handle_end(uint64_t id, const EngineEnd& ended) {
  // The trial leaves the map first, because on_ended may start the next trial on these slots.
  LiveTrial trial = std::move(running_.at(id));
  running_.erase(id);
  cancel_timers(trial);
  if (ended.abandoned.empty()) {
    remove_swap_folders(trial.facts.config, trial.facts.trial_dir);
    release(trial);
  } else {
    has_abandoned_ = true;  // its processes hold slots and port
    engine_->hold(trial.slots);
  }

  trial.facts.exit = ended.exit;
  trial.facts.verdict = ended.verdict;
  trial.facts.not_started = ended.not_started;
  trial.facts.abandoned = ended.abandoned;
  trial.facts.kernel_oom_kills = ended.kernel_oom_kills;
  trial.facts.ended_at = utc_now();
  TrialEnd end = classify(trial.facts);
  try {
    write_exit(trial.facts, end);
  } catch (const Error& error) {
    end.warnings.emplace_back(error.what());
  }
  // An engine's infrastructure verdict is about the trial's hosts.
  watch_slots(end, trial.slots, end.infrastructure && ended.verdict && ended.verdict->infrastructure);
  watch_port(end, trial.slots);
  report_start(trial);
  if (on_ended) on_ended(end);
}

// If the script chooses a fixed port that the command does not show, only one trial can run on a host. One message
// without a port number may be another program's fault; a second one is no chance.
void TrialRunner::watch_port(const TrialEnd& end, const std::vector<Slot>& slots) {
  const bool may_be_chosen = end.taken_port == TakenPort::chosen || end.taken_port == TakenPort::unnamed;
  if (!may_be_chosen || one_at_a_time_ || !engine_->slots_name_hosts()) return;
  const auto is_beside = [&](const auto& running) {
    const std::vector<Slot>& others = running.second.slots;
    return std::any_of(others.begin(), others.end(), [&](const Slot& other) {
      return std::any_of(slots.begin(), slots.end(), [&](const Slot& own) { return own.host == other.host; });
    });
  };
  if (std::none_of(running_.begin(), running_.end(), is_beside)) return;
  if (end.taken_port == TakenPort::unnamed && ++unnamed_ports_ < 2) return;
  one_at_a_time_ = true;
  if (!on_notice) return;
  on_notice(fmt::format(
      "trials run one at a time from now on: the script of trial {} chooses its port itself, and another trial "
      "had this port; let the script use MASTER_PORT, and trials can run side by side",
      end.id));
}

void TrialRunner::watch_slots(const TrialEnd& end, const std::vector<Slot>& slots, bool host_failed) {
  const SlotWatch::Finding finding = slot_watch_.add(end, slots, host_failed);
  engine_->restore(finding.restored);
  // Waiting slots may have been given out already, if a trial had no other place.
  const bool are_kept = !finding.broken.empty() && engine_->withhold(finding.broken, options_.slots.shapes());
  if (!are_kept) return;
  broken_.insert(broken_.end(), finding.broken.begin(), finding.broken.end());
  if (on_notice) on_notice(finding.notice);
}

// The engine gives out a broken slot only if no other slot has room for a trial.
void TrialRunner::report_reuse(const std::vector<Slot>& slots) {
  const auto is_given = [&](const Slot& broken) {
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.name() == broken.name(); });
  };
  const auto given = std::stable_partition(broken_.begin(), broken_.end(), [&](const Slot& s) { return !is_given(s); });
  const std::vector<Slot> returned(given, broken_.end());
  broken_.erase(given, broken_.end());
  if (returned.empty() || !on_notice) return;
  on_notice(fmt::format("broken slots are used again, since trials have no other place: {}", slot_list(returned)));
}

void TrialRunner::run_elsewhere(uint64_t id) {
  const std::vector<Slot> slots = slot_watch_.failed_on(id);
  if (slots.empty() || slot_watch_.any_awaited(slots)) return;
  if (engine_->withhold(slots, options_.slots.shapes())) slot_watch_.await_rerun(id);
}

std::optional<TrialEnd> TrialRunner::find_end(const TrialSpec& spec) {
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
    if (facts.ended_at.empty()) facts.ended_at = utc_now();
  }
  TrialEnd end = classify(facts);
  end.started_at = known ? known->started_at : noted_start(folder, spec.attempt);
  if (end.outcome == Outcome::completed) return end;
  // Without exit.json no host saw the end: host and trial may have died at any point. If the recorded outcome differs,
  // a power loss destroyed what the trial wrote.
  const bool ended_by_itself =
      known && known->seen_outcome == to_string(end.outcome) && end.outcome != Outcome::stopped && !end.infrastructure;
  return ended_by_itself ? std::optional<TrialEnd>(std::move(end)) : std::nullopt;
}

std::string TrialRunner::last_written_at(const TrialSpec& spec) {
  const fs::path folder = trial_folder(options_.run_dir, spec.id);
  std::string last;
  if (!is_run_of(folder, spec, options_)) return last;
  for (const char* name : {kStdoutFile, kStderrFile, kMetricsFile}) last = std::max(last, modified_at(folder / name));
  return last;
}

}  // namespace dsat::host
