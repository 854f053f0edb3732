#include "report.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "dsat/host/record.h"

namespace dsat::cli {
namespace {

using host::Outcome;
namespace fs = std::filesystem;

constexpr Outcome kOutcomes[] = {Outcome::completed,      Outcome::out_of_memory, Outcome::failed, Outcome::timed_out,
                                 Outcome::invalid_config, Outcome::stopped,       Outcome::lost};
constexpr size_t kTailLines = 12;

std::string file_text(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The last lines of a script's standard error, which alone can say why every trial fails.
std::vector<std::string> tail_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    line = one_line(line);
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    if (lines.size() == kTailLines) lines.erase(lines.begin());
    lines.push_back(line);
  }
  return lines;
}

void print_last_failure(const fs::path& dir, Console& console) {
  const auto record = host::read_study(dir);
  if (!record.ok()) return;
  const auto& trials = record->trials;
  const auto failed = std::find_if(trials.rbegin(), trials.rend(), [](const host::TrialRecord& trial) {
    return trial.started() && trial.outcome && *trial.outcome != Outcome::completed &&
           *trial.outcome != Outcome::stopped && *trial.outcome != Outcome::lost;
  });
  if (failed == trials.rend()) return;
  const fs::path file = dir / "trials" / std::to_string(failed->id) / "stderr.log";
  const std::vector<std::string> lines = tail_of(file);
  if (lines.empty()) return;
  console.error_detail("last lines of trial " + std::to_string(failed->id) + " (" + file.string() + "):");
  for (const std::string& line : lines) console.error_detail("  " + line);
}

void print_summary(const fs::path& dir, Console& console) {
  std::string summary = file_text(dir / "summary.txt");
  if (summary.empty()) return;
  if (summary.back() != '\n') summary += '\n';
  console.text().write("\n" + summary);
}

void print_best(const host::StudyResult& result, Console& console) {
  if (!result.best) return;
  const std::string config = result.best->config.dump(2, ' ', false, Json::error_handler_t::replace);
  console.line("\nbest configuration (trial " + std::to_string(result.best->trial) + "):\n" + config);
  if (!result.best->why.empty()) console.line(one_line(result.best->why));
}

void print_places(const host::StudyResult& result, Console& console) {
  console.line("");
  if (result.best) {
    console.line("configuration  " + (result.dir / "best_ds_config.json").string());
    console.line("its metrics    " + (result.dir / "best_ds_metrics.json").string());
    console.line("train with     " + (result.dir / "best_cmd.txt").string());
  }
  console.line("all trials     dsat-host show " + result.dir.string());
}

}  // namespace

Json result_json(const host::StudyResult& result) {
  Json best = nullptr;
  if (result.best) {
    best = Json{{"trial", result.best->trial}, {"config", result.best->config}, {"metrics", result.best->metrics}};
  }
  Json trials = Json::object();
  for (const Outcome outcome : kOutcomes) {
    const auto count = result.counts.find(outcome);
    trials[to_string(outcome)] = count == result.counts.end() ? 0 : count->second;
  }
  return Json{{"status", to_string(result.status)},
              {"reason", result.reason},
              {"best", std::move(best)},
              {"trials", std::move(trials)}};
}

void report(const host::StudyResult& result, Console& console) {
  print_summary(result.dir, console);
  print_best(result, console);
  print_places(result, console);
  const std::string reason = result.reason.empty() ? std::string("no reason is known") : result.reason;
  switch (result.status) {
    case host::StudyStatus::completed:
      break;
    case host::StudyStatus::interrupted:
      console.error("interrupted: " + reason);
      console.line("dsat-host resume " + result.dir.string());
      break;
    case host::StudyStatus::no_best:
      console.error("no best configuration: " + reason);
      print_last_failure(result.dir, console);
      break;
    case host::StudyStatus::running:
    case host::StudyStatus::failed:
      console.error("the study failed: " + reason);
      break;
  }
}

}  // namespace dsat::cli
