#include "deepspeed/result_files.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "deepspeed/summary.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrialFiles[] = {"cmd.txt",         "ds_config.json", "metrics.json",
                                       "model_info.json", "stdout.log",     "stderr.log"};

std::string pretty(const Json& json) { return json.dump(4, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Slots of several hosts are HOST:SLOT.
size_t hosts_of(const host::TrialRecord& trial) {
  std::set<std::string> hosts;
  for (const std::string& slot : trial.slots) {
    const size_t colon = slot.find(':');
    hosts.insert(colon == std::string::npos ? "" : slot.substr(0, colon));
  }
  return std::max<size_t>(1, hosts.size());
}

}  // namespace

DeepspeedOutput::DeepspeedOutput(DeepspeedStudy study, Console& console) : study_(std::move(study)), console_(console) {
  const auto record = host::read_study(study_.dir);
  if (!record.ok()) return;
  for (const host::TrialRecord& trial : record->trials) {
    if (is_experiment(trial)) names_.name(trial);
  }
}

void DeepspeedOutput::complain(const std::string& what) {
  if (!std::exchange(complained_, true)) console_.error("DeepSpeed's results are not complete: " + what);
}

void DeepspeedOutput::write(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path half = file.string() + ".new";
  if (!(std::ofstream(half) << text << std::flush)) return complain("cannot write " + file.string());
  fs::rename(half, file, error);
  if (error) complain("cannot write " + file.string() + ": " + error.message());
}

Json DeepspeedOutput::description(const host::TrialRecord& trial) {
  Json json{{"name", names_.name(trial)}, {"exp_id", trial.id}};
  if (!trial.slots.empty()) {
    json["num_gpus"] = trial.slots.size() / hosts_of(trial);
    json["num_nodes"] = hosts_of(trial);
  }
  json["ds_config"] = trial.config;
  return json;
}

void DeepspeedOutput::describe(const host::TrialRecord& trial) {
  write(study_.exps_dir / (names_.name(trial) + ".json"), pretty(description(trial)));
}

// The trial's folder under its name; large logs are not written twice where the file system can help it.
void DeepspeedOutput::keep(const host::TrialRecord& trial) {
  const fs::path source = study_.dir / "trials" / std::to_string(trial.id);
  const fs::path target = study_.results_dir / names_.name(trial);
  std::error_code error;
  fs::remove_all(target, error);
  fs::create_directories(target, error);
  if (error) return complain("cannot make " + target.string() + ": " + error.message());
  for (const char* file : kTrialFiles) {
    std::error_code none, linked;
    if (!fs::exists(source / file, none)) continue;
    fs::create_hard_link(source / file, target / file, linked);
    if (linked) fs::copy_file(source / file, target / file, error);
    if (error) complain("cannot write " + (target / file).string() + ": " + error.message());
  }
  Json json = description(trial);
  json["result_dir"] = target.string();
  json["trial_dir"] = source.string();
  if (trial.outcome) json["outcome"] = host::to_string(*trial.outcome);
  json["reason"] = trial.reason;
  write(target / "exp.json", pretty(json));
}

void DeepspeedOutput::on_trial_submitted(const host::TrialRecord& trial) { describe(trial); }

void DeepspeedOutput::on_trial_ended(const host::TrialRecord& trial) {
  if (!is_experiment(trial) || !trial.started()) return;
  describe(trial);
  keep(trial);
}

void DeepspeedOutput::finish() {
  const auto record = host::read_study(study_.dir);
  if (!record.ok()) return complain(record.status().message());
  for (const host::TrialRecord& trial : record->trials) {
    std::error_code error;
    const bool ended = is_experiment(trial) && trial.started() && trial.outcome;
    if (ended && !fs::exists(study_.results_dir / names_.name(trial) / "exp.json", error)) keep(trial);
  }
  write(study_.results_dir / "summary.txt", deepspeed_summary(record.value(), names_));
  if (!record->best) return;
  write(study_.results_dir / "ds_config_optimal.json", pretty(record->best->config));
  std::string command = text_of(study_.dir / "best_cmd.txt");
  const std::string own = "/" + study_.dir.filename().string() + "/best_ds_config.json";
  const size_t at = command.find(own);
  if (study_.dir.parent_path() == study_.results_dir && at != std::string::npos) {
    command.replace(at, own.size(), "/ds_config_optimal.json");
  }
  write(study_.results_dir / "cmd_optimal.txt", command);
}

std::vector<fs::path> deepspeed_results(const DeepspeedStudy& study) {
  std::vector<fs::path> paths;
  const auto record = host::read_study(study.dir);
  if (!record.ok()) return paths;
  ExperimentNames names;
  for (const host::TrialRecord& trial : record->trials) {
    if (!is_experiment(trial)) continue;
    paths.push_back(study.results_dir / names.name(trial));
    paths.push_back(study.exps_dir / (names.name(trial) + ".json"));
  }
  for (const char* file : {"summary.txt", "ds_config_optimal.json", "cmd_optimal.txt"}) {
    paths.push_back(study.results_dir / file);
  }
  return paths;
}

}  // namespace dsat::cli
