// Collects the best experiment of each stage and writes a Markdown table, as DeepSpeed does.
#include "deepspeed/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "terminal/times.h"

namespace dsat::cli {
namespace {

struct StageBest {
  int experiments = 0;
  std::optional<double> metric;
  std::string name;
};

using Line = std::vector<std::string>;

// Aligns the numbers of a column at their decimal points.
void align_points(std::vector<Line>& lines, size_t column) {
  const auto behind = [](const std::string& text) {
    const size_t point = text.find('.');
    return point == std::string::npos ? 0 : text.size() - point;
  };
  size_t most = 0;
  for (size_t i = 1; i < lines.size(); ++i) most = std::max(most, behind(lines[i][column]));
  for (size_t i = 1; i < lines.size(); ++i) lines[i][column].append(most - behind(lines[i][column]), ' ');
}

// A Markdown table with numbers to the right; the first line is the heading.
std::string markdown_table(const std::vector<Line>& lines, const std::vector<bool>& right) {
  constexpr size_t kAroundHeading = 2;
  std::vector<size_t> widths;
  for (const std::string& heading : lines.front()) widths.push_back(heading.size() + kAroundHeading);
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (size_t row = 0; row < lines.size(); ++row) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string blanks(widths[i] - lines[row][i].size(), ' ');
      text += "| " + (right[i] ? blanks + lines[row][i] : lines[row][i] + blanks) + " ";
    }
    text += "|\n";
    if (row > 0) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string dashes(widths[i] + 1, '-');
      text += "|" + (right[i] ? dashes + ":" : ":" + dashes);
    }
    text += "|\n";
  }
  return text;
}

// The time in which trials ran, without pauses before a resume, in the format of Python's timedelta.
std::string duration(const host::StudyRecord& study) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (const host::TrialRecord& trial : study.trials) {
    const int64_t from = microseconds_of(trial.started_at), to = microseconds_of(trial.ended_at);
    if (from > 0 && to > 0) runs.emplace_back(from, to);  // a crash may have cost a trial its times
  }
  std::sort(runs.begin(), runs.end());
  int64_t span = 0, until = 0;
  for (const auto& [from, to] : runs) {
    span += std::max<int64_t>(0, to - std::max(from, until));
    until = std::max(until, to);
  }
  const int64_t seconds = span / 1'000'000;
  return fmt::format("{}:{:02}:{:02}.{:06}", seconds / 3600, seconds / 60 % 60, seconds % 60, span % 1'000'000);
}

void take(StageBest& row, const std::string& name, std::optional<double> metric, bool maximise) {
  ++row.experiments;
  const bool better = metric && (!row.metric || (maximise ? *metric > *row.metric : *metric < *row.metric));
  if (!better && (row.metric || !row.name.empty())) return;
  row.metric = metric;
  row.name = name;
}

Line cells(const std::string& space, const StageBest& row) {
  return {space, fmt::format("{}", row.experiments), fmt::format("{:g}", row.metric.value_or(0)), row.name};
}

}  // namespace

std::string deepspeed_summary(const host::StudyRecord& study, ExperimentNames& names) {
  const std::string metric = study.study.value("metric", "");
  const bool maximise = study.study.value("direction", "maximize") == "maximize";
  std::map<int, StageBest> stages;
  StageBest global;
  std::string best_name;
  for (const host::TrialRecord& trial : study.trials) {
    if (!is_experiment(trial)) continue;
    const std::string& name = names.name(trial);
    if (is_model_information(trial) || !trial.started()) continue;
    std::optional<double> value;
    if (trial.outcome == host::Outcome::completed && trial.metrics.is_object()) {
      const auto it = trial.metrics.find(metric);
      if (it != trial.metrics.end() && it->is_number()) value = it->get<double>();
    }
    take(stages[stage_of(trial)], name, value, maximise);
    take(global, name, value, maximise);
    best_name = study.best && study.best->trial == trial.id ? name : best_name;
  }
  // The best of the study may be the mean of several trials.
  if (study.best) {
    global.metric = study.best->metric;
    global.name = best_name;
  }
  std::vector<Line> lines{{"tuning_space", "num_experiments", "best_metric_val", "best_exp_name"}};
  for (const auto& [stage, row] : stages) lines.push_back(cells(fmt::format("z{}", stage), row));
  lines.push_back(cells("global", global));
  align_points(lines, 2);
  return fmt::format("{}\nTuning completed in {}. Total number of experiments: {}.\n",
                     markdown_table(lines, {false, true, true, false}), duration(study), global.experiments);
}

}  // namespace dsat::cli
