// Reads plan and trials from the journal, chooses as the study did, and writes the files through Results.
#include "study/rescue/best_again.h"

#include <fmt/format.h>

#include "base/guarded.h"
#include "command/command_template.h"
#include "dsat/base/owner.h"
#include "dsat/config/json_numbers.h"
#include "dsat/host/environment.h"
#include "plan/device_memory.h"
#include "plan/experiment_files.h"
#include "plan/plan.h"
#include "record/journal.h"
#include "record/run_lock.h"
#include "study/results/best_command.h"
#include "study/results/results.h"
#include "study/results/run_dir.h"
#include "study/state/best.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

bool gives_train_batch(Journal& journal) { return !journal.meta(kLeavesOutTrainBatch).has_value(); }

BestRecord best_of_trial(const std::vector<Trial>& trials, uint64_t id, const std::string& metric,
                         bool has_train_batch) {
  if (id >= trials.size()) {
    throw Error(fmt::format("there is no trial {}: the study has {}, `dsat-host show` lists them", id, trials.size()));
  }
  const Trial& trial = trials[id];
  const TrialRecord& record = trial.record;
  if (record.outcome != Outcome::completed || trial.model_info) {
    const char* how = trial.model_info ? "measured the model only"
                      : record.outcome ? to_string(*record.outcome)
                                       : "has not ended";
    throw Error(fmt::format("trial {} did not complete ({}): name one that did, `dsat-host show` lists them", id, how));
  }
  return {id, best_config(record.config, has_train_batch), record.metrics,
          config::number_at(record.metrics, metric).value_or(0), ""};
}

// The best in the journal; if that row is empty or damaged, the best by the study's rules.
BestRecord best_of_study(Journal& journal, const std::vector<Trial>& trials, const Plan& plan) {
  const Json stored = journal.meta("best").value_or(Json());
  try {
    const auto trial = config::whole_number_at<uint64_t>(stored, "trial");
    if (trial && *trial < trials.size()) {
      return {*trial, stored.at("config"), stored.at("metrics"), stored.at("metric").get<double>(),
              stored.at("why").get<std::string>()};
    }
  } catch (const std::exception&) {
  }
  DeviceMemory memory(plan);
  for (const Trial& trial : trials) {
    if (trial.end) memory.learn(trial.end->device_memory_bytes);
  }
  const BestRules rules{false, plan.memory_margin > 0 ? memory.usable() : std::nullopt, gives_train_batch(journal)};
  const auto best = choose_best(trials, plan.metric, plan.maximise, std::nullopt, rules);
  if (!best)
    throw Error(fmt::format("{}: no trial that may be handed back has given {}", journal.file().parent_path().string(),
                            plan.metric));
  return *best;
}

std::string command_for(Plan plan, const Json& config, bool writes) {
  if (plan.command.empty()) return "";
  const Environment environment = current_environment();
  try {
    add_experiment(find_launcher(fs::path()), environment, plan);
  } catch (const Error&) {  // the command goes without the experiment: its folder or the launcher is not usable
  }
  try {
    CommandTemplate command(request_of(plan, environment));
    command.learn_from(plan.user_config);
    return best_command(plan, command, config, writes);
  } catch (const Error&) {
    return "";  // the script is gone; the configuration is worth showing
  }
}

}  // namespace

BestOutput best_again(const fs::path& given, std::optional<uint64_t> trial, bool writes) {
  const std::unique_ptr<Journal> journal = Journal::open(given, Journal::Mode::read_only);
  const fs::path dir = fs::absolute(given).lexically_normal();
  const std::optional<Json> stored = journal->meta("plan");
  if (!stored) throw Error(DSAT_INTERNAL, fmt::format("journal {}: its plan is lost", journal->file().string()));
  Plan plan = plan_from_json(*stored);
  plan.dir = dir;
  const std::vector<Trial> trials = journal->trials();
  BestOutput output;
  output.metric = plan.metric;
  output.best = trial ? best_of_trial(trials, *trial, plan.metric, gives_train_batch(*journal))
                      : best_of_study(*journal, trials, plan);
  output.command = command_for(plan, trials[output.best.trial].record.config, writes);
  if (!writes) return output;
  Results results([&](const Json&) { return output.command; });
  const Json profile = journal->meta("profile").value_or(Json());
  const std::optional<BestRecord> best = output.best;
  try {
    output.written = results.write_best({plan, trials, profile, best, plan.device_memory_bytes, "", nullptr});
  } catch (const Error& error) {  // the caller still gets the best
    output.why_not_written = error.what();
  }
  return output;
}

Result<BestOutput> write_best(const fs::path& dir, std::optional<uint64_t> trial) {
  return as_result([&] {
    const std::string not_ours = why_others_control(dir);
    BestOutput output = best_again(dir, trial, not_ours.empty() && !RunLock::is_held(dir));
    if (!not_ours.empty()) output.why_not_written = fmt::format("{}: {}", dir.string(), not_ours);
    return output;
  });
}

}  // namespace dsat::host
