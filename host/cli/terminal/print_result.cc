// Prints the result of a study in three parts: the summary that the host wrote, the changes in the best configuration,
// and the paths of the files. Errors follow on standard error, the reason first.
#include "terminal/print_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dsat/base/files.h"
#include "dsat/base/secrets.h"
#include "dsat/base/shell.h"
#include "dsat/base/utf8.h"
#include "dsat/config/json.h"
#include "dsat/host/facts.h"
#include "terminal/changes.h"
#include "terminal/style.h"

namespace dsat::cli {
namespace {

using host::Outcome;
namespace fs = std::filesystem;

constexpr Outcome kOutcomes[] = {Outcome::completed,      Outcome::out_of_memory, Outcome::failed, Outcome::timed_out,
                                 Outcome::invalid_config, Outcome::stopped,       Outcome::lost,   Outcome::diverged};

// The files of a study's results, by their names in --json.
constexpr std::pair<const char*, const char*> kFiles[] = {{"configuration", "best_ds_config.json"},
                                                          {"metrics", "best_ds_metrics.json"},
                                                          {"command", "best_cmd.txt"},
                                                          {"report", "report.html"}};

// Lines of the table are cut to the width of the terminal; the lines below it are printed in full.
void print_summary(const fs::path& dir, Console& console) {
  const std::string summary = try_read_file(dir / "summary.txt").bytes;
  if (summary.empty()) return;
  const size_t columns = style_of(console.text()).live ? static_cast<size_t>(console.text().columns()) : 0;
  std::string text = "\n";
  bool in_table = summary.rfind("stage ", 0) == 0;  // a study in which nothing ran has no table
  for (size_t begin = 0, end = 0; begin < summary.size(); begin = end + 1) {
    end = std::min(summary.find('\n', begin), summary.size());
    const std::string line = summary.substr(begin, end - begin);
    in_table = in_table && !line.empty();
    text += (in_table && columns > 0 ? shortened(line, columns) : line) + "\n";
  }
  console.print(mask_secrets(text));
}

// If the script goes on from its latest checkpoint, the training begins at the step of a trial's.
void warn_of_checkpoint(const host::StudyFacts& facts, Console& console) {
  for (size_t id = 0; id < facts.trials.size(); ++id) {
    const std::string& folder = facts.trials[id].checkpoint_outside;
    std::error_code error;
    if (folder.empty() || !fs::exists(folder, error)) continue;
    console.line(
        fmt::format("warning: trial {} saved a checkpoint in {}: a training that goes on from its latest checkpoint "
                    "begins with it; remove it before you train",
                    id, folder));
    return;
  }
}

void print_best(const host::StudyResult& result, Console& console) {
  if (!result.best) return;
  const auto facts = host::read_study_facts(result.dir);
  if (!facts.ok()) {
    const std::string config = config::text_of(result.best->config, 2);
    console.line(fmt::format("\nbest configuration (trial {}):\n{}", result.best->trial, config));
  } else {
    console.text().write("\n");
    for (const std::string& line : change_lines(facts.value())) console.line(line);
    warn_of_checkpoint(facts.value(), console);
  }
}

void print_places(const host::StudyResult& result, Console& console) {
  console.line("");
  if (result.best) {
    console.line(fmt::format("configuration  {}", (result.dir / "best_ds_config.json").string()));
    console.line(fmt::format("its metrics    {}", (result.dir / "best_ds_metrics.json").string()));
    if (std::error_code error; fs::exists(result.dir / "best_cmd.txt", error)) {
      console.line(fmt::format("train with     {}", (result.dir / "best_cmd.txt").string()));
    }
  }
  console.line(fmt::format("all trials     dsat-host show {}", shell_quote(result.dir.string())));
}

// The commands that resume a failed study; empty: it cannot be resumed. Another searcher is suggested only once the
// profile is there: before, it would meet the same profiler.
std::string after_failure(const host::StudyResult& result, const std::string& reason,
                          const std::string& resume_options) {
  if (result.dir.empty()) return "";
  const auto record = host::read_study(result.dir);
  if (!record.ok()) return "";
  const std::string resume = fmt::format("dsat-host resume {}{}", shell_quote(result.dir.string()), resume_options);
  const bool is_plugins = reason.rfind("plugin ", 0) == 0 || reason.rfind("replay_mismatch", 0) == 0;
  if (!is_plugins || !record->profile.is_object()) return resume;
  const char* other = reason.rfind("plugin guided:", 0) == 0 ? "random" : "guided";
  return fmt::format("{}\nif it fails again: {} --searcher {}", resume, resume, other);
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
  Json files = Json::object();
  for (const auto& [key, name] : kFiles) {
    std::error_code error;
    const fs::path file = result.dir / name;
    files[key] = !result.dir.empty() && fs::exists(file, error) ? Json(file.string()) : Json();
  }
  Json json{{"status", to_string(result.status)},
            {"reason", mask_secrets(result.reason)},
            {"best", std::move(best)},
            {"trials", std::move(trials)},
            {"metric", result.metric.empty() ? Json() : Json(result.metric)},
            {"dir", result.dir.string()},
            {"files", std::move(files)}};
  if (result.gain) json["gain"] = host::to_json(*result.gain);
  if (result.check) json["check"] = host::to_json(*result.check);
  if (result.end_to_end) json["end_to_end"] = host::to_json(*result.end_to_end);
  return json;
}

void print_result(const host::StudyResult& result, const std::vector<std::string>& errors, Console& console,
                  const std::string& resume_options) {
  print_summary(result.dir, console);
  print_best(result, console);
  print_places(result, console);
  const std::string reason = result.reason.empty() ? std::string("no reason is known") : result.reason;
  bool has_failed = false;
  switch (result.status) {
    case host::StudyStatus::completed:
      break;
    case host::StudyStatus::interrupted:
      console.error(reason == "interrupted" ? "interrupted; everything is saved, `dsat-host resume` goes on"
                                            : fmt::format("interrupted: {}", reason));
      console.line(fmt::format("dsat-host resume {}{}", shell_quote(result.dir.string()), resume_options));
      break;
    case host::StudyStatus::no_best:
      console.error(result.best
                        ? fmt::format("the search ended early: {}; the best configuration comes from the trials "
                                      "measured before",
                                      reason)
                        : fmt::format("no best configuration: {}", reason));
      break;
    case host::StudyStatus::running:
    case host::StudyStatus::failed:
      console.error(fmt::format("the study failed: {}", reason));
      has_failed = true;
      break;
  }
  for (const std::string& error : errors) console.error_detail(error);
  if (!has_failed) return;
  if (const std::string next = after_failure(result, reason, resume_options); !next.empty()) console.print(next + "\n");
}

}  // namespace dsat::cli
