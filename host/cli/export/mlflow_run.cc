// All leaves of a trial's configuration become parameters, its numbers metrics, the rest tags. A name may have letters,
// digits, blanks and _-. here; any other character becomes an underscore. If two names become equal, the second gets a
// number.
#include "export/mlflow_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <filesystem>
#include <set>

#include "dsat/base/utf8.h"
#include "export/flat_study.h"
#include "terminal/times.h"

namespace dsat::cli {
namespace {

using host::Outcome;

constexpr size_t kLongestValue = 500;  // every version of MLflow takes it
constexpr size_t kLongestName = 240;   // MLflow takes 250, a file system 255 with the suffix of a temporary file

std::string mlflow_name(std::string name, std::set<std::string>& taken) {
  for (char& c : name) {
    const bool fits =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_-. ").find(c) != std::string_view::npos;
    if (!fits) c = '_';
  }
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return unique_name(name, taken, kLongestName);
}

// FNV-1a; the halves of an id have different starts.
uint64_t hash(const std::string& text, uint64_t start) {
  uint64_t value = 0xcbf29ce484222325u ^ start;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

std::string identity(const host::StudyFacts& facts) {
  std::error_code ignored;
  return std::filesystem::absolute(facts.record.dir, ignored).lexically_normal().string() + "\n" +
         facts.progress.started_at;
}

// A trial that was open when its host ended does not run any more; it runs again when the study is resumed.
std::string status_of(const host::StudyFacts& facts, size_t index) {
  const host::TrialRecord& trial = facts.record.trials[index];
  if (!trial.outcome && facts.trials[index].place == host::TrialPlace::running) return "RUNNING";
  if (!trial.outcome) return facts.record.status == host::StudyStatus::running ? "SCHEDULED" : "KILLED";
  if (trial.outcome == Outcome::completed) return "FINISHED";
  return trial.outcome == Outcome::stopped ? "KILLED" : "FAILED";
}

MlflowRun run_of(const host::StudyFacts& facts, size_t index) {
  const host::TrialRecord& trial = facts.record.trials[index];
  const host::TrialFacts& more = facts.trials[index];
  MlflowRun run;
  const std::string own = fmt::format("{}\n{}", identity(facts), trial.id);
  run.id = fmt::format("{:016x}{:016x}", hash(own, 0), hash(own, 1));
  run.name = fmt::format("trial {}", trial.id);
  run.status = status_of(facts, index);
  run.start_ms = microseconds_of(start_of(trial)) / 1000;
  run.end_ms = microseconds_of(trial.ended_at) / 1000;
  std::set<std::string> params, metrics;
  for (const Leaf& leaf : leaves_of(trial.config)) {
    run.params.emplace_back(mlflow_name(leaf.first, params), shortened(leaf_text(leaf.second), kLongestValue));
  }
  run.metrics = numbers_of(trial);
  for (auto& metric : run.metrics) metric.first = mlflow_name(metric.first, metrics);
  const auto tag = [&](const char* name, const std::string& value) {
    if (!value.empty()) run.tags.emplace_back(name, shortened(value, kLongestValue));
  };
  tag("mlflow.runName", run.name);
  tag("dsat.outcome", outcome_of(facts, index));
  tag("dsat.kind", to_string(trial.kind));
  tag("dsat.phase", more.phase);
  tag("dsat.slots", leaf_text(fmt::format("{}", fmt::join(trial.slots, ","))));
  tag("dsat.reason", leaf_text(trial.reason));
  tag("dsat.note", leaf_text(trial.note));
  if (facts.record.best && facts.record.best->trial == trial.id) tag("dsat.best", "true");
  return run;
}

}  // namespace

std::vector<MlflowRun> mlflow_runs(const host::StudyFacts& facts) {
  std::vector<MlflowRun> runs;
  for (const size_t i : exported_trials(facts)) runs.push_back(run_of(facts, i));
  return runs;
}

std::string mlflow_experiment_id(const host::StudyFacts& facts) {
  return fmt::format("{:018}", hash(identity(facts), 2) % 1'000'000'000'000'000'000u);
}

}  // namespace dsat::cli
