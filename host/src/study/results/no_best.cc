// Counts the outcomes of the trials and quotes the last one that failed.
#include "study/results/no_best.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

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
  // A measured configuration that is no best failed its verification, or lies above the memory margin.
  const bool is_measured = !measured_configurations(trials, metric).empty();
  const std::string lack =
      fmt::format(is_measured ? "nothing that gave {} may be handed back" : "no trial gave {}", metric);
  return fmt::format("{}; {} ({}){}{}", reason, lack, ends, last_failure, only_the_profilers(trials));
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
