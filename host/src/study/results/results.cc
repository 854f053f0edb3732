// Makes the summary's table from the trials and the cost model, and writes the files that have changed.
#include "study/results/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/fault_point.h"
#include "command/command_template.h"
#include "command/environment_use.h"
#include "dsat/base/files.h"
#include "dsat/base/table.h"
#include "dsat/base/units.h"
#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/json_numbers.h"
#include "dsat/config/rules.h"
#include "dsat/config/world.h"
#include "dsat/host/format.h"
#include "facts/memory.h"
#include "finals/drift.h"
#include "finals/end_to_end.h"
#include "finals/gain.h"
#include "finals/simpler.h"
#include "finals/twin_check.h"
#include "finals/verification.h"
#include "plan/device_peak.h"
#include "record/measured.h"
#include "record/versions.h"
#include "variables/hyperparameters.h"

namespace dsat::host {
namespace {

struct StageRow {
  int stage = 0;
  int trials = 0, out_of_memory = 0, failed = 0;
  const MeasuredConfiguration* best = nullptr;
};

std::string estimated_memory(const MemoryEstimates& estimates, const Json& config) {
  const auto peak = estimates.peak(config);
  return peak ? format_size(peak->value) : "-";
}

constexpr const char* kBestConfigFile = "best_ds_config.json";
constexpr const char* kBestMetricsFile = "best_ds_metrics.json";
constexpr const char* kBestCommandFile = "best_cmd.txt";

constexpr const char* kZero = "zero_optimization.";

// Lists the trial's overrides, key by key, without stage and batch sizes.
void list_overrides(const Json& overrides, const std::string& prefix, std::string& text) {
  for (const auto& item : overrides.items()) {
    const std::string key = prefix + item.key();
    if (key == "zero_optimization.stage" || key == config::kMicroBatchKey) continue;
    if (item.value().is_object()) {
      list_overrides(item.value(), key + ".", text);
      continue;
    }
    // The keys of ZeRO are known without their section. Other keys stand in full: two sections may have one key.
    const std::string shown = key.rfind(kZero, 0) == 0 ? key.substr(std::strlen(kZero)) : key;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", shown, item.value().dump());
  }
}

std::vector<StageRow> rows_of(const ResultsView& view, const std::vector<MeasuredConfiguration>& measured) {
  std::vector<StageRow> rows;
  const auto row_for = [&](int stage) -> StageRow& {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const StageRow& row) { return row.stage == stage; });
    if (found != rows.end()) return *found;
    rows.emplace_back();
    rows.back().stage = stage;
    return rows.back();
  };
  for (const config::StageSpace& stage : view.plan.space.stages) row_for(stage.stage);
  for (const Trial& trial : view.trials) {
    if (!trial.record.started() || trial.model_info) continue;
    StageRow& row = row_for(config::zero_stage(trial.record.config));
    ++row.trials;
    if (trial.record.outcome == Outcome::out_of_memory)
      ++row.out_of_memory;
    else if (trial.record.outcome && trial.record.outcome != Outcome::completed &&
             trial.record.outcome != Outcome::stopped)
      ++row.failed;
  }
  for (const MeasuredConfiguration& m : measured) {
    StageRow& row = row_for(config::zero_stage(view.trials[m.trial].record.config));
    const bool better =
        row.best == nullptr || (!is_tie(m.metric, row.best->metric) &&
                                (view.plan.maximise ? m.metric > row.best->metric : m.metric < row.best->metric));
    if (better) row.best = &m;
  }
  std::sort(rows.begin(), rows.end(), [](const StageRow& a, const StageRow& b) { return a.stage < b.stage; });
  return rows;
}

std::vector<std::string> cells(const ResultsView& view, const StageRow& row, const MemoryEstimates& estimates) {
  std::vector<std::string> line;
  for (const int count : {row.stage, row.trials, row.out_of_memory, row.failed}) line.push_back(fmt::to_string(count));
  if (row.best == nullptr) {
    line.insert(line.end(), {"-", "-", "-", "-", "-", "-"});
    return line;
  }
  const TrialRecord& record = view.trials[row.best->trial].record;
  std::string overrides;
  list_overrides(record.overrides, "", overrides);
  line.push_back(format_metric(view.plan.metric, row.best->metric));
  line.push_back(record.config.value(config::kMicroBatchKey, Json()).dump());
  line.push_back(record.config.value(config::kAccumulationKey, Json()).dump());
  line.push_back(estimated_memory(estimates, record.config));
  line.push_back(row.best->peak_bytes ? format_size(static_cast<double>(*row.best->peak_bytes)) : "-");
  line.push_back(fmt::format("trial {}{}{}", record.id, overrides.empty() ? "" : ": ", overrides));
  return line;
}

// Returns, for example, "ran out of memory: CUDA out of memory".
std::string how_it_ended(const TrialRecord& record) {
  std::string text = to_string(*record.outcome);
  std::replace(text.begin(), text.end(), '_', ' ');
  return record.reason.empty() ? text : fmt::format("{}: {}", text, record.reason);
}

// The gain of the best over the user's own configuration, or why there is none.
std::string gain_text(const Plan& plan, const std::vector<Trial>& trials, const BaselineConfiguration& own,
                      const std::optional<BestRecord>& best) {
  if (!plan.baseline) return "";
  if (!own.why_not.empty()) return fmt::format("your own configuration: not measured, {}\n", own.why_not);
  if (best) {
    if (const auto gain = gain_over_own(trials, plan.metric, plan.maximise, own.identity, best->trial)) {
      const std::string made_of = format_gain_sides(*gain, plan.metric);
      return fmt::format("gain: {}{}\n{}{}", format_gain(*gain, best->trial),
                         format_devices(trials[gain->baseline].record.config, trials[best->trial].record.config),
                         made_of, made_of.empty() ? "" : "\n");
    }
  }
  const auto ended = [&](const Trial& trial) {
    return trial.identity == own.identity && trial.record.outcome && trial.record.started();
  };
  const auto trial = std::find_if(trials.begin(), trials.end(), ended);
  if (trial == trials.end() || trial->record.outcome == Outcome::completed) return "";
  return fmt::format("your own configuration: trial {}, {}\n", trial->id(), how_it_ended(trial->record));
}

// "tokens: ..." of the best, if --tokens-per-sample is given and its throughput is known; with the share of the
// devices' peak, by the usual 6 FLOPs a token and parameter, if the model's size is known too.
std::string tokens_text(const ResultsView& view) {
  const double samples = config::number_at(view.best->metrics, "throughput").value_or(0);
  if (!view.plan.tokens_per_sample || samples <= 0) return "";
  const double tokens = samples * static_cast<double>(*view.plan.tokens_per_sample);
  const auto world = config::tuned_world(view.best->config);
  const int64_t devices = world ? world->size() : view.plan.slots.slots_per_trial;
  const double params = view.profile.is_object() ? config::number_at(view.profile, "num_params").value_or(0) : 0;
  if (view.plan.device.empty() || params <= 0) return fmt::format("tokens: {} tokens/s\n", format_count(tokens));
  const double peak = device_peak_flops(view.plan.device);
  return fmt::format("tokens: {} tokens/s, MFU {:.1f} % (6 x {} parameters, of {} x {} at {}FLOP/s)\n",
                     format_count(tokens), 100 * 6 * params * tokens / (peak * static_cast<double>(devices)),
                     format_count(params), devices, view.plan.device, format_count(peak));
}

// "end to end: a step takes ...", if the script takes clearly more of a step of the best than the engine does; else "".
std::string end_to_end_text(const Plan& plan, const std::vector<Trial>& trials, const BaselineConfiguration& own,
                            const std::optional<BestRecord>& best) {
  if (!best) return "";
  const auto found = end_to_end_of_best(trials, plan.baseline ? own.identity : "", best->trial);
  return found && found->is_script_bound() ? fmt::format("end to end: {}\n", format_end_to_end(*found)) : "";
}

// The divergences that twins have shown, and whether the best was checked. A simulation without losses says nothing.
std::string guard_text(const ResultsView& view) {
  std::string text;
  for (const std::string& line : divergences(view.trials)) text += fmt::format("diverged: {}\n", line);
  if (!view.best || view.own == nullptr || view.reason.empty()) return text;
  const auto check = check_of_best(view.trials, view.own->identity, view.best->trial, view.plan.twin,
                                   view.plan.simulation.has_value());
  return check ? text + format_check(*check) + "\n" : text;
}

// The configurations that failed when they were measured again, and how they failed.
std::string repeats_text(const std::vector<Trial>& trials) {
  std::string text;
  for (const Trial& trial : trials) {
    if (!fails_again(trial) || fails_verification(trial)) continue;
    const auto first = std::find_if(trials.begin(), trials.end(),
                                    [&](const Trial& other) { return other.identity == trial.identity; });
    text +=
        fmt::format("measured again: trial {} as trial {}, {}\n", first->id(), trial.id(), how_it_ended(trial.record));
  }
  return text;
}

// The trials that trained further to verify the best, and their outcomes. If the study has ended and the best was not
// verified, the text says so. Empty without --verify.
std::string verification_text(const Plan& plan, const std::vector<Trial>& trials, const std::optional<BestRecord>& best,
                              bool has_ended) {
  if (plan.verify_steps < 1) return "";
  std::string text;
  bool best_lasted = false;
  for (const Trial& trial : trials) {
    if (trial.phase != Phase::verification || !trial.record.outcome) continue;
    const bool lasted = trial.record.outcome == Outcome::completed;
    best_lasted = best_lasted || (lasted && best && trial.identity == trials[best->trial].identity);
    const auto first = std::find_if(trials.begin(), trials.end(),
                                    [&](const Trial& other) { return other.identity == trial.identity; });
    text += lasted ? fmt::format("verified: trial {} trained {} further steps\n", first->id(), plan.verify_steps)
                   : fmt::format("not verified: trial {} did not train {} further steps ({})\n", first->id(),
                                 plan.verify_steps, how_it_ended(trial.record));
  }
  if (has_ended && !best_lasted && (best || !text.empty())) text += "the best itself was not verified\n";
  return text;
}

}  // namespace

std::string summary_text(const ResultsView& view) {
  const std::vector<MeasuredConfiguration> measured = measured_configurations(view.trials, view.plan.metric);
  std::vector<std::vector<std::string>> lines{{"stage", "trials", "oom", "failed", view.plan.metric, "micro batch",
                                               "accumulation", "memory estimated", "measured", "best of the stage"}};
  const MemoryEstimates estimates(
      {view.profile, view.device_memory_bytes, view.plan.data_parallel_size, view.plan.filled_in_precision()},
      view.trials);
  const std::vector<StageRow> rows = rows_of(view, measured);
  for (const StageRow& row : rows) lines.push_back(cells(view, row, estimates));
  // Before the first measured run every row is zeros.
  const bool is_any_run = std::any_of(rows.begin(), rows.end(), [](const StageRow& row) { return row.trials > 0; });
  std::string text = is_any_run ? format_table(lines) : "";
  if (view.best) {
    const Json& best = view.best->config;
    text += fmt::format("\nbest: trial {}, ZeRO stage {}, micro batch {}, {} {}\n", view.best->trial,
                        config::zero_stage(best), best.value(config::kMicroBatchKey, Json()).dump(), view.plan.metric,
                        format_metric(view.plan.metric, view.best->metric));
    if (!view.best->why.empty()) text += fmt::format("note: {}\n", view.best->why);
  }
  if (view.best) text += tokens_text(view);
  if (view.best) text += simplified_text(view.trials, view.best->trial);
  text += drift_text(view.trials, view.plan.metric, view.plan.maximise);
  if (view.own != nullptr) {
    text += gain_text(view.plan, view.trials, *view.own, view.best);
    text += end_to_end_text(view.plan, view.trials, *view.own, view.best);
  }
  if (const std::string versions = versions_text(view.trials); !versions.empty()) {
    text += fmt::format("trained with {}\n", versions);
  }
  text += repeats_text(view.trials);
  text += guard_text(view);
  text += verification_text(view.plan, view.trials, view.best, !view.reason.empty());
  if (!view.reason.empty()) text += fmt::format("ended: {}\n", view.reason);
  return text;
}

std::optional<std::chrono::steady_clock::time_point> Results::due() const {
  return is_behind_ ? std::optional(next_) : std::nullopt;
}

void Results::write(const ResultsView& view, bool now) {
  if (view.plan.dir.empty()) return;
  // A new best is rare, and its files must be there if this program is killed.
  const bool is_same = view.best && best_written_ && view.best->trial == best_written_->trial &&
                       view.best->metric == best_written_->metric;
  if (view.best && (now || !is_same)) write_best(view);
  if (!view.best && (now || best_written_)) remove_best(view.plan.dir);
  const auto time = std::chrono::steady_clock::now();
  is_behind_ = !now && time < next_;
  if (is_behind_) return;
  write_changed(view.plan.dir / "summary.txt", summary_text(view));
  // The summary of many thousand trials is slow, so it may take at most a twentieth of the study's time.
  const auto end = std::chrono::steady_clock::now();
  next_ = end + std::max<std::chrono::steady_clock::duration>(std::chrono::seconds(1), 20 * (end - time));
}

// The files must go, since a user who finds them takes them for the best.
void Results::remove_best(const std::filesystem::path& dir) {
  for (const char* name :
       {kBestConfigFile, kBestMetricsFile, kBestCommandFile, kBestHyperparametersFile, kBestDeepSpeedEnvFile,
        kBestAccelerateFile, kBestHostfile, kBestTrainFile, kBestTrainJsonFile}) {
    std::error_code error;
    std::filesystem::remove(dir / name, error);
    written_.erase(name);
  }
  best_written_.reset();
}

std::vector<std::filesystem::path> Results::write_best(const ResultsView& view) {
  const std::filesystem::path& dir = view.plan.dir;
  const auto indented = [](const Json& json) { return config::text_of(json, 2) + "\n"; };
  std::vector<std::filesystem::path> written;
  const auto write_one = [&](const char* name, std::string text) {
    if (write_changed(dir / name, std::move(text))) written.push_back(dir / name);
  };
  write_one(kBestConfigFile, indented(as_script_takes_it(view.plan.command, view.best->config)));
  write_one(kBestMetricsFile, indented(view.best->metrics));
  const std::string command = command_line_(view.trials[view.best->trial].record.config);
  if (!command.empty()) write_one(kBestCommandFile, command + "\n");
  if (view.plan.hyperparameters.is_object()) {
    write_one(kBestHyperparametersFile,
              indented(trial_hyperparameters(view.plan.hyperparameters, view.best->config, dir / kBestConfigFile)));
  }
  best_written_ = view.best;
  return written;
}

bool Results::write_changed(const std::filesystem::path& file, std::string text) {
  std::string& written = written_[file.filename().string()];
  if (written == text) return false;
  write_file_atomically(file, text, Durability::synced, Access::owner);
  fault_point("results.file");
  written = std::move(text);
  return true;
}

}  // namespace dsat::host
