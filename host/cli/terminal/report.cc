#include "terminal/report.h"

#include <fstream>
#include <sstream>

namespace dsat::cli {
namespace {

using host::Outcome;
namespace fs = std::filesystem;

constexpr Outcome kOutcomes[] = {Outcome::completed,      Outcome::out_of_memory, Outcome::failed, Outcome::timed_out,
                                 Outcome::invalid_config, Outcome::stopped,       Outcome::lost};

std::string file_text(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// As a shell takes it back.
std::string shell_word(const std::string& text) {
  constexpr const char* kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+,:@%=";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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
    if (std::error_code error; fs::exists(result.dir / "best_cmd.txt", error)) {
      console.line("train with     " + (result.dir / "best_cmd.txt").string());
    }
  }
  console.line("all trials     dsat-host show " + shell_word(result.dir.string()));
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

void report(const host::StudyResult& result, const std::vector<std::string>& errors, Console& console) {
  print_summary(result.dir, console);
  print_best(result, console);
  print_places(result, console);
  const std::string reason = result.reason.empty() ? std::string("no reason is known") : result.reason;
  switch (result.status) {
    case host::StudyStatus::completed:
      break;
    case host::StudyStatus::interrupted:
      console.error(reason == "interrupted" ? "interrupted; everything is saved, `dsat-host resume` goes on"
                                            : "interrupted: " + reason);
      console.line("dsat-host resume " + shell_word(result.dir.string()));
      break;
    case host::StudyStatus::no_best:
      console.error(result.best ? "the search ended early: " + reason + "; the best configuration is that of the " +
                                      "trials measured before"
                                : "no best configuration: " + reason);
      break;
    case host::StudyStatus::running:
    case host::StudyStatus::failed:
      console.error("the study failed: " + reason);
      break;
  }
  for (const std::string& error : errors) console.error_detail(error);
}

}  // namespace dsat::cli
