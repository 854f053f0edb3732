#include "dsat/host/study.h"

#include <atomic>
#include <boost/dll/runtime_symbol_info.hpp>
#include <exception>
#include <system_error>
#include <thread>

#include "base/printable_text.h"
#include "command/command_template.h"
#include "command/hyperparameters.h"
#include "record/journal.h"
#include "record/run_lock.h"
#include "runner/local_runner.h"
#include "runner/preflight.h"
#include "runner/trial_files.h"
#include "sim/simulated_runner.h"
#include "study/coordinator.h"
#include "study/plan.h"

#ifndef DSAT_LIBEXEC_DIR
#define DSAT_LIBEXEC_DIR "/usr/local/libexec/dsat"
#define DSAT_LIBEXEC_DIR_FROM_BIN "../libexec/dsat"
#endif

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

// The given one, or the one beside this program, or the installed one.
Result<fs::path> find_launcher(const fs::path& given) {
  std::error_code error;
  if (!given.empty()) {
    if (fs::exists(given, error)) return fs::absolute(given);
    return Status::invalid("trial launcher " + given.string() + ": no such file");
  }
  boost::dll::fs::error_code location_error;
  const fs::path folder = fs::path(boost::dll::program_location(location_error).string()).parent_path();
  const fs::path beside = folder / "dsat-launch";
  if (!location_error && fs::exists(beside, error)) return beside;
  const fs::path moved = (folder / DSAT_LIBEXEC_DIR_FROM_BIN / "dsat-launch").lexically_normal();
  if (!location_error && fs::exists(moved, error)) return moved;
  const fs::path installed = fs::path(DSAT_LIBEXEC_DIR) / "dsat-launch";
  if (fs::exists(installed, error)) return installed;
  return Status::invalid("no trial launcher: dsat-launch is neither at " + beside.string() + " nor at " +
                         installed.string() + "; install dsat or name it in the options");
}

// A simulation has no trial folders.
Status make_run_dir(const fs::path& dir, bool with_trials) {
  std::error_code error;
  fs::create_directories(with_trials ? dir / "trials" : dir, error);
  if (!error) return {};
  return Status::invalid("output directory " + dir.string() + ": " + error.message() + "; give another --output-dir");
}

// What an earlier study left in its directory, which is locked; files that are none of a study's stay.
Status delete_study(const fs::path& dir, bool with_trials) {
  std::error_code error;
  for (const char* name :
       {"dsat.db", "dsat.db-wal", "dsat.db-shm", "dsat.db-journal", "best_ds_config.json", "best_ds_metrics.json",
        "best_hparams.json", "best_cmd.txt", "summary.txt", "report.html", "trials", "full_experiment"}) {
    fs::remove_all(dir / name, error);
    if (error) return Status::invalid(dir.string() + ": cannot delete the earlier study: " + error.message());
  }
  return make_run_dir(dir, with_trials);
}

// Where the training in earnest runs: includes are beside the model's files only in a copy.
fs::path best_folder(const Plan& plan) {
  if (plan.trial_cwd != TrialCwd::copy || plan.includes.empty()) return plan.cwd;
  const fs::path folder = plan.dir / "full_experiment";
  std::error_code error;
  if (fs::exists(folder, error) || copy_into(folder, plan.cwd, plan.includes, plan.dir).ok()) return folder;
  return plan.cwd;
}

LocalRunnerOptions runner_options(const Plan& plan, CommandTemplate command, const Environment& environment,
                                  const fs::path& launcher) {
  return {plan.dir,           std::move(command),
          plan.cwd,           plan.trial_cwd,
          plan.includes,      environment,
          plan.variables,     plan.hyperparameters,
          plan.slots.backend, plan.slots.slots,
          plan.slots.shape,   plan.slots.sizes_are_tuned(),
          plan.max_slots,     plan.slots.hostfile,
          launcher,           {plan.start_profile_step, plan.end_profile_step},
          plan.trial_timeout, plan.no_progress_timeout};
}

std::unique_ptr<Runner> make_runner(Loop& loop, const Plan& plan, std::optional<CommandTemplate> command,
                                    const Environment& environment, const fs::path& launcher) {
  if (!plan.simulation) {
    return std::make_unique<LocalRunner>(loop, runner_options(plan, std::move(*command), environment, launcher));
  }
  return std::make_unique<SimRunner>(
      loop, SimRunnerOptions{plan.simulation->surface, plan.seed, plan.slots.slots, plan.slots.slots_per_trial,
                             plan.max_slots, plan.trial_timeout, static_cast<uint64_t>(plan.end_profile_step)});
}

Result<CommandTemplate> parse_command(const Plan& plan, const Environment& environment) {
  return CommandTemplate::parse(
      {plan.command, plan.config_file, plan.arg_mappings, plan.cwd, environment, plan.config_by_environment});
}

// Can every host of the plan be reached, by what the command starts?
Status check_reach(const Plan& plan, const Environment& environment) {
  if (plan.slots.hostfile.empty()) return {};
  const Result<CommandTemplate> command = parse_command(plan, environment);
  if (!command.ok()) return command.status();
  return check_hosts({plan.slots, command.value(), environment, plan.cwd, plan.dir});
}

// What the best command must say of slots beyond what the user's command does.
std::optional<CommandTemplate::Size> size_to_say(const Plan& plan, const Json& config) {
  if (!plan.slots.size_is_ours && !plan.slots.sizes_are_tuned()) return std::nullopt;
  CommandTemplate::Size size{plan.shape_of(config), plan.slots.hostfile};
  if (plan.slots.filtered) size.slots = SlotPool(plan.slots.slots, std::nullopt).take(size.shape).value_or(size.slots);
  return size;
}

// The command with the best configuration, one that a shell runs. What an experiment file set goes along with it.
std::string best_command(const Plan& plan, const CommandTemplate& command, const Json& config) {
  const fs::path config_file = plan.dir / "best_ds_config.json";
  const Argv argv = command.render_best(config, config_file, size_to_say(plan, config));
  if (!plan.hyperparameters.is_object()) return shell_join(argv);
  Environment variables = plan.variables;
  set_variable(variables, "DSAT_DS_CONFIG", config_file.string());
  set_variable(variables, kHyperparametersVariable, (plan.dir / kBestHyperparametersFile).string());
  std::string line = command_line(best_folder(plan), variables, argv);
  line.pop_back();  // its newline
  return line;
}

}  // namespace

namespace {

// A study that has ended and that nothing asks to go on: its result, and what would make it go on.
struct Ended {
  StudyResult result;
  std::string what_next;
};

}  // namespace

class Study::Impl {
 public:
  Impl(Plan given, std::optional<RunLock> held, std::unique_ptr<Journal> opened)
      : plan(std::move(given)),
        lock(std::move(held)),
        journal(std::move(opened)),
        loop(plan.simulation ? Loop::Time::simulated : Loop::Time::real) {
    settings = settings_of(plan);
  }

  StudyResult run(Observer& observer);

  Plan plan;
  std::optional<RunLock> lock;  // of the folder, if there is one
  std::unique_ptr<Journal> journal;
  Json settings;
  Environment environment;
  fs::path launcher;
  bool resumed = false;
  bool has_run = false;
  std::optional<Ended> already;
  std::atomic<int> stop_level{0};
  Loop loop;
};

StudyResult Study::Impl::run(Observer& observer) {
  const auto failed = [&](const std::string& why) {
    StudyResult result;
    result.reason = why;
    result.dir = plan.dir;
    return result;
  };
  for (const std::string& notice : plan.notices) observer.on_log(Observer::Severity::warning, notice);
  for (const std::string& line : plan.slots.placements) observer.on_log(Observer::Severity::info, line);
  std::optional<CommandTemplate> command;
  if (!plan.command.empty()) {
    Result<CommandTemplate> parsed = parse_command(plan, environment);
    if (!parsed.ok()) return failed(parsed.status().message());
    command = std::move(parsed).value();
  }
  Results results([this, for_best = command](const Json& config) {
    return for_best ? best_command(plan, *for_best, config) : std::string();
  });
  const std::unique_ptr<Runner> runner = make_runner(loop, plan, std::move(command), environment, launcher);
  Coordinator coordinator(plan, *journal, *runner, loop, results, observer, stop_level);
  if (resumed) {
    const Status status = coordinator.resume();
    if (!status.ok()) return failed(status.message());
  }
  return coordinator.run();
}

Study::Study(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Study::~Study() = default;

Result<std::unique_ptr<Study>> Study::create(StudyOptions options) {
  try {
    if (options.environment.empty()) options.environment = current_environment();
    Result<fs::path> launcher = options.simulation ? fs::path() : find_launcher(options.launcher);
    if (!launcher.ok()) return launcher.status();
    Result<Plan> plan = make_plan(options);
    if (!plan.ok()) return plan.status();
    if (plan->dir.empty()) {
      auto impl = std::make_unique<Impl>(std::move(plan).value(), std::nullopt, Journal::none());
      impl->environment = std::move(options.environment);
      return std::unique_ptr<Study>(new Study(std::move(impl)));
    }
    Status status = check_reach(plan.value(), options.environment);
    if (!status.ok()) return status;
    status = make_run_dir(plan->dir, !plan->simulation);
    if (!status.ok()) return status;
    Result<RunLock> lock = RunLock::take(plan->dir);
    if (!lock.ok()) return lock.status();
    if (options.replace_study) status = delete_study(plan->dir, !plan->simulation);
    if (!status.ok()) return status;
    Result<std::unique_ptr<Journal>> journal = Journal::open(plan->dir, Journal::Mode::create);
    if (!journal.ok()) return journal.status();
    auto impl = std::make_unique<Impl>(std::move(plan).value(), std::move(lock).value(), std::move(journal).value());
    impl->environment = std::move(options.environment);
    impl->launcher = launcher.value();
    impl->journal->begin();
    impl->journal->put_meta("plan", to_json(impl->plan));
    impl->journal->put_meta("settings", impl->settings);
    impl->journal->put_meta("max_trials", impl->plan.max_trials);
    status = impl->journal->commit();
    if (!status.ok()) return status;
    return std::unique_ptr<Study>(new Study(std::move(impl)));
  } catch (const std::exception& e) {
    return Status::internal(e.what());
  }
}

namespace {

std::optional<Ended> ended_result(const fs::path& dir, const ResumeOptions& options, const Plan& plan) {
  const Result<StudyRecord> record = read_study(dir);
  if (!record.ok()) return std::nullopt;
  const bool done = record->status == StudyStatus::completed || record->status == StudyStatus::no_best;
  const bool raised = (options.max_trials && *options.max_trials > plan.max_trials) || options.time_budget;
  if (!done || raised) return std::nullopt;
  Ended ended;
  ended.result.status = record->status;
  ended.result.reason = record->reason;
  ended.result.best = record->best;
  ended.result.counts = record->counts();
  ended.result.dir = dir;
  // Without a profile there was no search that more trials could lengthen.
  ended.what_next = record->profile.is_object()
                        ? "this study has ended; --max-trials above " + std::to_string(plan.max_trials) +
                              " or a --time-budget takes it up again"
                        : "this study ended before its search began: start a new one once the reason is mended";
  return ended;
}

}  // namespace

Result<std::unique_ptr<Study>> Study::resume(const fs::path& given, ResumeOptions options) {
  try {
    const fs::path dir = fs::absolute(given).lexically_normal();
    std::error_code error;
    if (!fs::exists(dir / "dsat.db", error)) {
      return Status::invalid(given.string() +
                             ": holds no study (no dsat.db); give the folder that a study was written to");
    }
    Result<RunLock> lock = RunLock::take(dir);
    if (!lock.ok()) return lock.status();
    Result<std::unique_ptr<Journal>> journal = Journal::open(dir, Journal::Mode::open);
    if (!journal.ok()) return journal.status();
    const std::optional<Json> stored = journal.value()->meta("plan");
    if (!stored) return Status::invalid(dir.string() + ": its journal holds no plan; start a new study");
    Result<Plan> plan = plan_from_json(*stored);
    if (!plan.ok()) return plan.status();
    plan->dir = dir;
    Result<fs::path> launcher = plan->simulation ? fs::path() : find_launcher(options.launcher);
    if (!launcher.ok()) return launcher.status();
    if (options.environment.empty()) options.environment = current_environment();
    std::optional<Ended> already = ended_result(dir, options, plan.value());
    if (!already) {
      const Status reach = check_reach(plan.value(), options.environment);
      if (!reach.ok()) return reach;
    }
    if (options.max_trials) plan->max_trials = *options.max_trials;
    if (options.max_concurrent_trials) plan->max_concurrent_trials = *options.max_concurrent_trials;
    plan->time_budget = options.time_budget ? options.time_budget : plan->time_budget;
    auto impl = std::make_unique<Impl>(std::move(plan).value(), std::move(lock).value(), std::move(journal).value());
    impl->environment = std::move(options.environment);
    impl->launcher = launcher.value();
    impl->resumed = true;
    impl->already = std::move(already);
    return std::unique_ptr<Study>(new Study(std::move(impl)));
  } catch (const std::exception& e) {
    return Status::internal(e.what());
  }
}

StudyResult Study::run(Observer& observer) {
  StudyResult result;
  result.dir = impl_->plan.dir;
  if (impl_->already) {
    observer.on_log(Observer::Severity::info, impl_->already->what_next);
    return impl_->already->result;
  }
  if (std::exchange(impl_->has_run, true)) {
    result.reason = "a study runs once; resume it as a new one";
    return result;
  }
  std::thread control([&] {
    try {
      result = impl_->run(observer);
    } catch (const std::exception& e) {
      result.status = StudyStatus::failed;
      result.reason = e.what();
    }
  });
  control.join();
  return result;
}

void Study::request_stop() noexcept {
  impl_->stop_level.fetch_add(1);
  impl_->loop.wake();
}

const fs::path& Study::dir() const { return impl_->plan.dir; }
const Json& Study::settings() const { return impl_->settings; }

}  // namespace dsat::host
