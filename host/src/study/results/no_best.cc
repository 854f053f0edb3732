// Counts the outcomes of the trials and quotes the last one that failed.
#include "study/results/no_best.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "record/measured.h"

namespace dsat::host {
namespace {

// A script reports the same figures in every trial, so that the first one shows what it never reports. Two are needed
// where one may be odd.
constexpr int kWithoutMetric = 2;
constexpr std::array<const char*, 6> kInItsPlace{"throughput", "FLOPS_per_gpu", "latency",
                                                 "forward",    "backward",      "step"};

bool gives(const Json& metrics, const std::string& name) {
  const auto it = metrics.find(name);
  return it != metrics.end() && it->is_number();
}

// The metric may still come: this trial's figure of it was left out, or the host itself measures it beside the script.
bool may_be_odd(const Trial& trial, const std::string& metric) {
  if (metric == "wall_throughput" || metric == "wall_latency") return true;
  if (!trial.end) return false;
  const std::vector<std::string>& left_out = trial.end->left_out;
  return std::find(left_out.begin(), left_out.end(), metric) != left_out.end();
}

// A short study may end before its search begins.
const char* only_the_profilers(const std::vector<Trial>& trials) {
  const bool are_all = std::all_of(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.model_info && trial.record.outcome == Outcome::completed;
  });
  if (trials.empty() || !are_all) return "";
  return "; the first trials are the profiler's, which measure the model and no speed: raise --max-trials";
}

}  // namespace

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
  // What was measured failed its verification, or lies above the memory margin.
  const bool is_measured = !measured_configurations(trials, metric).empty();
  const std::string lack =
      fmt::format(is_measured ? "nothing that gave {} may be handed back" : "no trial gave {}", metric);
  return fmt::format("{}; {} ({}){}{}", reason, lack, ends, last_failure, only_the_profilers(trials));
}

std::optional<std::string> why_metric_is_missing(const std::vector<Trial>& trials, const std::string& metric) {
  int without = 0;
  std::vector<const char*> reported;
  for (const Trial& trial : trials) {
    const Json& metrics = trial.record.metrics;
    if (trial.record.outcome != Outcome::completed || trial.record.duplicate_of || trial.model_info) continue;
    if (!metrics.is_object() || gives(metrics, metric)) return std::nullopt;
    without += may_be_odd(trial, metric) ? 1 : kWithoutMetric;
    for (const char* name : kInItsPlace) {
      const bool is_new = std::find(reported.begin(), reported.end(), name) == reported.end();
      if (is_new && gives(metrics, name)) reported.push_back(name);
    }
  }
  if (without < kWithoutMetric || reported.empty()) return std::nullopt;
  std::string list = reported.front();
  for (size_t i = 1; i < reported.size(); ++i) {
    list += fmt::format("{}{}", i + 1 == reported.size() ? " and " : ", ", reported[i]);
  }
  return fmt::format("the trials report {}, but no {}: give --metric {}", list, metric, reported.front());
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
