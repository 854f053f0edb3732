// Creates and resumes studies: options or journal become a plan, the folder is locked, the journal opened. run() puts
// runner and coordinator together on a thread of their own.
#include "dsat/host/study.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <system_error>
#include <thread>

#include "base/fault_point.h"
#include "base/guarded.h"
#include "base/subprocess.h"
#include "command/command_template.h"
#include "dsat/base/affix.h"
#include "dsat/host/facts.h"
#include "local/trial_processes.h"
#include "plan/device_hours.h"
#include "plan/experiment_files.h"
#include "plan/plan.h"
#include "plan/runners.h"
#include "record/journal.h"
#include "record/plan_copy.h"
#include "record/run_lock.h"
#include "runner/probe.h"
#include "slots/slot_claim.h"
#include "study/rescue/best_again.h"
#include "study/results/best_command.h"
#include "study/results/run_dir.h"
#include "study/resume/resumed_state.h"
#include "study/state/searches.h"
#include "study/state/strategy_run.h"
#include "study/turn/coordinator.h"
#include "study/turn/guarded_observer.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

Trust trust_of(bool trusts_folder) { return trusts_folder ? Trust::others : Trust::own; }

CommandTemplate parse_command(const Plan& plan, const Environment& environment) {
  CommandTemplate command(request_of(plan, environment));
  command.learn_from(plan.user_config);
  return command;
}

// Loads the plugins that the study still needs. A profiler that has done its work may be gone. A searcher that is
// replaced is not loaded.
void load_plugins(Plan& plan, std::optional<Phase> last_phase, const ResumeOptions& options) {
  if (!last_phase || last_phase == Phase::profiler) load_plugin(plan.profiler, plan, options.accept_changed_plugins);
  if (options.searcher) {
    plan.searcher = choose_strategy(*options.searcher, PluginKind::searcher, plan, true);
  } else {
    load_plugin(plan.searcher, plan, options.accept_changed_plugins);
  }
}

// A study that has ended and goes on with none of the given options: its result, and what would make it go on.
struct EndedStudy {
  StudyResult result;
  std::string what_next;
};

std::optional<EndToEnd> end_to_end_of_study(const fs::path& dir) {
  const Result<StudyFacts> facts = read_study_facts(dir);
  return facts.ok() ? facts->end_to_end : std::nullopt;
}

// The options that would make an ended study go on.
std::string what_next(const StudyRecord& record, const Plan& plan, double spent_hours, bool spent, bool lacked_time) {
  if (spent) {  // no other option helps: the budget would end the study again
    return fmt::format("this study has ended: its budget is spent; a --budget above {}gpuh takes it up again",
                       std::ceil(spent_hours * 1000) / 1000);
  }
  // Without a profile there was no search that more trials could lengthen.
  if (!record.profile.is_object() && !plan.lacks_configuration()) {
    return fmt::format("this study ended before its search began: {}",
                       lacked_time ? "a --time-budget takes it up again" : "start a new one once the reason is mended");
  }
  return fmt::format("this study has ended; --max-trials above {} {}takes it up again", plan.max_trials,
                     lacked_time ? "or a --time-budget " : "");
}

bool is_given_more_time(const ResumeOptions& options, const Plan& plan) {
  return options.time_budget && (options.same_time_goes_on || options.time_budget > plan.time_budget);
}

// `lacked_time`: its time budget ended the search.
std::optional<EndedStudy> ended_study(const fs::path& dir, const ResumeOptions& options, const Plan& plan,
                                      double spent_hours, bool lacked_time) {
  const Result<StudyRecord> record = read_study(dir);
  if (!record.ok()) return std::nullopt;
  lacked_time = lacked_time || starts_with(record->reason, kTimeIsSpent);
  const bool spent = is_spent(options.budget.empty() ? plan.budget : options.budget, spent_hours);
  const bool done = record->status == StudyStatus::completed || record->status == StudyStatus::no_best;
  const bool raised = (options.max_trials && *options.max_trials > plan.max_trials) ||
                      (is_given_more_time(options, plan) && lacked_time) || is_spent(plan.budget, spent_hours);
  const bool taken_over = options.searcher && record->started() < plan.max_trials &&
                          (record->profile.is_object() || plan.lacks_configuration());
  if (!done || ((raised || taken_over) && !spent)) return std::nullopt;
  EndedStudy ended;
  ended.result = {record->status,           record->reason,   record->best, record->gain,
                  end_to_end_of_study(dir), record->counts(), dir,          plan.metric};
  ended.what_next = what_next(record.value(), plan, spent_hours, spent, lacked_time);
  return ended;
}

// The folder may have moved, and best_cmd.txt names files of it.
void write_best_again(const fs::path& dir, Observer& observer) {
  const auto written = as_result([&] { return best_again(dir, std::nullopt, true); });
  const std::string why_not = written.ok() ? written->why_not_written : written.status().message();
  if (!why_not.empty()) observer.on_log(Observer::Severity::warning, why_not);
}

// Ends the processes of trials whose host and launcher were killed. They would use the devices, and the files, of the
// trials to come.
void end_orphans(const fs::path& dir, Observer& observer) {
  const Reaped reaped = end_processes_of_study(dir);
  if (reaped.ended > 0) {
    observer.on_log(Observer::Severity::warning,
                    fmt::format("{} processes of trials had outlived their host, and were ended", reaped.ended));
  }
  if (reaped.are_left.empty()) return;
  throw Error(
      DSAT_INTERNAL,
      fmt::format("processes of earlier trials cannot be ended ({}): end them, or restart the machine, and then "
                  "`dsat-host resume`",
                  describe_processes(reaped.are_left)));
}

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

  static std::unique_ptr<Impl> create(StudyOptions options);
  static std::unique_ptr<Impl> resume(const fs::path& given, ResumeOptions options);
  StudyResult run(Observer& observer);

  Plan plan;
  std::optional<RunLock> lock;  // of the folder, if there is one
  std::unique_ptr<Journal> journal;
  Json settings;
  Environment environment;
  fs::path launcher;
  std::optional<ResumeTerms> resumes;  // of a study that is resumed
  bool has_run = false;
  std::optional<EndedStudy> already;
  std::atomic<int> stop_level{0};
  Loop loop;
};

// A program that embeds the library says where dsat-launch is; dsat-plugin-host is installed beside it.
void find_beside_launcher(StudyOptions& options) {
  std::error_code error;
  const fs::path beside = options.launcher.parent_path() / "dsat-plugin-host";
  if (options.plugin_host.empty() && !options.launcher.empty() && fs::exists(beside, error))
    options.plugin_host = beside;
}

std::unique_ptr<Study::Impl> Study::Impl::create(StudyOptions options) {
  check_ends_can_be_seen();
  find_beside_launcher(options);
  if (options.environment.empty()) options.environment = current_environment();
  const fs::path launcher = options.simulation ? fs::path() : find_launcher(options.launcher);
  Plan plan = make_plan(options);
  if (!plan.dir.empty() && !plan.simulation) {
    check_runner(plan, parse_command(plan, options.environment), options.environment);
  }
  try_strategies(plan);
  if (plan.dir.empty()) {
    auto impl = std::make_unique<Impl>(std::move(plan), std::nullopt, Journal::none());
    impl->environment = std::move(options.environment);
    return impl;
  }
  RunLock lock = claim_run_dir(plan, options.output_dir.empty(), trust_of(options.trust_folder));
  fault_point("start.locked");
  if (options.replace_study) delete_study(plan.dir);
  keep_given_hostfile(plan);
  std::unique_ptr<Journal> journal = Journal::create(plan.dir, [&](Journal& fresh) {
    fresh.put_meta("plan", to_json(plan));
    fresh.put_meta("settings", settings_of(plan));
    fresh.put_meta("max_trials", plan.max_trials);
  });
  keep_plan_copy(plan.dir, *journal);
  auto impl = std::make_unique<Impl>(std::move(plan), std::move(lock), std::move(journal));
  impl->environment = std::move(options.environment);
  impl->launcher = launcher;
  return impl;
}

std::unique_ptr<Study::Impl> Study::Impl::resume(const fs::path& given, ResumeOptions options) {
  check_ends_can_be_seen();
  Journal::check_is_in(given);  // before the path is made absolute: that throws where the current folder was removed
  const fs::path dir = fs::absolute(given).lexically_normal();
  RunLock lock = RunLock::take(dir, trust_of(options.trust_folder));
  std::unique_ptr<Journal> journal = Journal::open(dir, Journal::Mode::open);
  const std::optional<Json> stored = journal->meta("plan");
  if (!stored) {
    throw Error(DSAT_INTERNAL,
                fmt::format("journal {}: its plan is lost; {}", journal->file().string(), kRepairRemedy));
  }
  Plan plan = plan_from_json(*stored);
  plan.dir = dir;
  if (plan.simulation && !plan.simulation->surface) {
    throw Error("this study was simulated by a program of its own: dsat-host cannot resume it");
  }
  const fs::path launcher = plan.simulation ? fs::path() : find_launcher(options.launcher);
  if (options.environment.empty()) options.environment = current_environment();
  plan.plugin_timeout = options.plugin_timeout.value_or(plan.plugin_timeout);
  const std::optional<SearchEnd> end = Searches(journal->meta("searches")).current().end;
  std::optional<EndedStudy> already =
      ended_study(dir, options, plan, spent_device_hours(*journal), end.has_value() && end->of_time);
  if (!already) load_plugins(plan, journal->last_phase(), options);
  if (!already && !plan.simulation) {
    renew_slots(plan, options.environment);
    check_runner(plan, parse_command(plan, options.environment), options.environment);
  }
  plan.max_trials = options.max_trials.value_or(plan.max_trials);
  const int at_once_before =
      std::exchange(plan.max_concurrent_trials, options.max_concurrent_trials.value_or(plan.max_concurrent_trials));
  // On Slurm the limit alone may decide how many trials run at once.
  if (plan.runner == kSlurmRunner && plan.slots.at_once == at_once_before)
    plan.slots.at_once = plan.max_concurrent_trials;
  if (options.time_budget) plan.time_budget = options.time_budget;
  if (!options.budget.empty()) plan.budget = options.budget;
  auto impl = std::make_unique<Impl>(std::move(plan), std::move(lock), std::move(journal));
  impl->environment = std::move(options.environment);
  impl->launcher = launcher;
  impl->resumes = ResumeTerms{options.searcher.has_value(), options.time_budget.has_value(), options.time_used};
  impl->already = std::move(already);
  return impl;
}

StudyResult Study::Impl::run(Observer& observer) {
  fs::path probe;
  if (!plan.simulation && plan.probe) {
    probe = find_probe(launcher, plan.dir, !plan.slots.hostfile.empty() || plan.inject, plan.notices);
  }
  if (plan.inject && probe.empty()) throw Error("--inject needs the hook: " + plan.notices.back());
  // The experiment's variables are made anew in each process, and not kept in the plan.
  Plan with_experiment = plan;
  add_experiment(launcher, environment, with_experiment);
  plan.notices = with_experiment.notices;
  const bool is_local = !plan.simulation && plan.runner == kLocalRunner;
  const SlotClaim claim(is_local ? plan.slots.backend : Backend::none, plan.slots.slots);
  if (const auto notice = claim.notice_of_others()) plan.notices.push_back(*notice);
  for (const std::string& notice : plan.notices) observer.on_log(Observer::Severity::warning, notice);
  for (const std::string& line : plan.slots.placements) observer.on_log(Observer::Severity::info, line);
  std::optional<CommandTemplate> command;
  if (!plan.command.empty()) command = parse_command(plan, environment);
  Results results([&with_experiment, for_best = command](const Json& config) {
    return for_best ? best_command(with_experiment, *for_best, config) : std::string();
  });
  const std::unique_ptr<Runner> runner =
      make_runner(loop, with_experiment, std::move(command), environment, launcher, probe);
  TurnJournal turns(*journal, loop, observer, stop_level);
  PluginLog plugin_log(loop);
  const auto state = [&] {
    if (!resumes) return StudyState(plan);
    // The engines of a cluster adopt their steps and jobs themselves.
    if (is_local) end_orphans(plan.dir, observer);
    StudyState read = resumed_state(*journal, plan, *resumes, plugin_log, observer, loop);
    keep_plan_copy(plan.dir, *journal);
    return read;
  };
  return Coordinator(state(), {turns, *runner, loop, results, observer, plugin_log, stop_level}).run();
}

Study::Study(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Study::~Study() = default;

Result<std::unique_ptr<Study>> Study::create(StudyOptions options) {
  return as_result([&] { return std::unique_ptr<Study>(new Study(Impl::create(std::move(options)))); });
}

Result<std::unique_ptr<Study>> Study::resume(const fs::path& dir, ResumeOptions options) {
  return as_result([&] { return std::unique_ptr<Study>(new Study(Impl::resume(dir, std::move(options)))); });
}

StudyResult Study::run(Observer& given) {
  GuardedObserver observer(given);
  StudyResult result;
  result.dir = impl_->plan.dir;
  result.metric = impl_->plan.metric;
  if (impl_->already) {
    observer.on_log(Observer::Severity::info, impl_->already->what_next);
    if (impl_->already->result.best) write_best_again(impl_->plan.dir, observer);
    return impl_->already->result;
  }
  if (std::exchange(impl_->has_run, true)) {
    result.reason = "a study runs once; resume it as a new one";
    return result;
  }
  std::thread control([&] {
    try {
      result = impl_->run(observer);
    } catch (...) {
      result.status = StudyStatus::failed;
      result.reason = status_of_caught().message();
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
