// Counts the outcomes of all trials that are no duplicates, and compares the best with the user's own configuration.
#include "study/turn/conclusion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "finals/end_to_end.h"
#include "finals/gain.h"
#include "finals/twin_check.h"
#include "record/measured.h"

namespace dsat::host {
namespace {

// A short study may end before its search begins.
const char* only_the_profilers(const std::vector<Trial>& trials) {
  const bool are_all = std::all_of(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.model_info && trial.record.outcome == Outcome::completed;
  });
  if (trials.empty() || !are_all) return "";
  return "; the first trials are the profiler's, which measure the model and no speed: raise --max-trials";
}

// `reason`, how the trials ended, and why the last one failed.
std::string why_no_best(const std::vector<Trial>& trials, const std::string& metric, const std::string& reason) {
  std::map<Outcome, int> counts;
  std::string last_failure;
  for (const Trial& trial : trials) {
    if (!trial.record.outcome || trial.record.duplicate_of) continue;
    ++counts[*trial.record.outcome];
    if (*trial.record.outcome != Outcome::completed && !trial.record.reason.empty()) {
      last_failure = fmt::format("; trial {}: {}", trial.id(), trial.record.reason);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [outcome, count] : counts) parts.push_back(fmt::format("{} {}", count, to_string(outcome)));
  const std::string ends = parts.empty() ? "none ran" : fmt::format("{}", fmt::join(parts, ", "));
  // A measured configuration that is no best failed its verification, or lies above the memory margin.
  const bool is_measured = !measured_configurations(trials, metric).empty();
  const std::string lack =
      fmt::format(is_measured ? "nothing that gave {} may be handed back" : "no trial gave {}", metric);
  return fmt::format("{}; {} ({}){}{}", reason, lack, ends, last_failure, only_the_profilers(trials));
}

// Which stages ran out of memory at the smallest micro batch, and what needs less; empty: a trial has trained, or none
// ran out of memory there.
std::string why_nothing_fits(const StudyState& state) {
  std::set<int> stages;
  bool offloads = false;
  for (const Trial& trial : state.trials.all()) {
    const Json& config = trial.record.config;
    if (trial.record.outcome == Outcome::completed && !trial.model_info) return "";
    const Json* device = config::find(config, "zero_optimization.offload_optimizer.device");
    offloads = offloads || (device != nullptr && *device != "none");
    const auto micro_batch = config.value(config::kMicroBatchKey, int64_t{0});
    const bool ran_out = trial.record.outcome == Outcome::out_of_memory && !trial.record.duplicate_of;
    if (ran_out && !trial.lacked_host_memory() && micro_batch <= state.plan.space.min_micro_batch)
      stages.insert(config::zero_stage(config));
  }
  if (stages.empty()) return "";
  const char* offload = offloads ? "" : "zero_optimization.offload_optimizer.device cpu, ";
  return fmt::format(
      "nothing fits: stage{} {} ran out of memory at micro batch {}; {}more devices, recomputed activations or shorter "
      "sequences need less; ",
      stages.size() == 1 ? "" : "s", fmt::join(stages, ", "), state.plan.space.min_micro_batch, offload);
}

}  // namespace

void explain_missing_best(StudyState& state) {
  const bool is_reasoned = state.ending->status == StudyStatus::no_best;
  if ((!is_reasoned && state.ending->status != StudyStatus::completed) || state.best.get()) return;
  const std::string shortage = why_nothing_fits(state);
  if (is_reasoned) {
    state.ending->reason = shortage + state.ending->reason;
    return;
  }
  state.ending->status = StudyStatus::no_best;
  state.ending->reason = shortage + why_no_best(state.trials.all(), state.plan.metric, state.ending->reason);
  for (const std::string& culprit : state.watches.culprits.found()) state.ending->reason += "; " + culprit;
  if (state.plan.memory_margin > 0) {
    state.ending->reason += fmt::format("; --memory-margin is {}", state.plan.memory_margin);
  }
}

StudyResult result_of(const StudyState& state) {
  const Plan& plan = state.plan;
  StudyResult result;
  result.status = state.ending->status;
  result.reason = state.ending->reason;
  result.best = state.best.get();
  if (result.best) {
    const std::string baseline = plan.baseline ? state.baseline.identity : "";
    const std::vector<Trial>& trials = state.trials.all();
    if (plan.baseline) result.gain = gain_over_own(trials, plan.metric, plan.maximise, baseline, result.best->trial);
    result.end_to_end = end_to_end_of_best(trials, baseline, result.best->trial);
    result.check =
        check_of_best(trials, state.baseline.identity, result.best->trial, plan.twin, plan.simulation.has_value());
  }
  result.dir = plan.dir;
  result.metric = plan.metric;
  for (const Trial& trial : state.trials.all()) {
    if (trial.record.outcome && !trial.record.duplicate_of) ++result.counts[*trial.record.outcome];
  }
  return result;
}

void write_ending(const StudyResult& result, Journal& journal) {
  journal.put_meta("gain", result.gain ? to_json(*result.gain) : Json());
  journal.put_meta("ended", {{"status", to_string(result.status)}, {"reason", result.reason}});
}

void merge_log(Journal& journal, Observer& observer) {
  try {
    if (journal.checkpoint()) return;
    observer.on_log(
        Observer::Severity::info,
        fmt::format("{}: another program reads it, so its log stays beside it (dsat.db-wal); nothing is lost",
                    journal.file().string()));
  } catch (const Error& error) {  // the journal is whole all the same
    observer.on_log(Observer::Severity::warning, error.what());
  }
}

std::vector<std::string> last_lines_of_failure(const std::vector<Trial>& trials, const std::filesystem::path& dir) {
  const auto failing = std::find_if(trials.rbegin(), trials.rend(), [](const Trial& trial) {
    const bool failed = trial.record.outcome && *trial.record.outcome != Outcome::completed;
    return failed && trial.end && !trial.end->tail.empty();
  });
  if (failing == trials.rend()) return {};
  const std::string id = fmt::to_string(failing->id());
  const std::filesystem::path file = dir / "trials" / id / "stderr.log";
  std::vector<std::string> lines{fmt::format("last lines of trial {} ({}):", id, file.string())};
  for (const std::string& line : failing->end->tail) lines.push_back("  " + line);
  return lines;
}

}  // namespace dsat::host
