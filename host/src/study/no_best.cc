// Counts the outcomes of the trials and quotes the last one that failed.
#include "study/no_best.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace dsat::host {

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
  return fmt::format("{}; no trial gave {} ({}){}", reason, metric, ends, last_failure);
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
