// Writes an experiment's files when its trial has ended, and the summary at the end of the study, from its record. Logs
// are hard links if the file system allows, otherwise copies.
#include "deepspeed/result_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "deepspeed/summary.h"
#include "dsat/config/json.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrialFiles[] = {"cmd.txt",         "ds_config.json", "metrics.json",
                                       "model_info.json", "stdout.log",     "stderr.log"};

std::string pretty(const Json& json) { return config::text_of(json, 4) + "\n"; }

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
  if (!std::exchange(complained_, true)) console_.error(fmt::format("DeepSpeed's results are not complete: {}", what));
}

void DeepspeedOutput::write(const fs::path& file, const std::string& text, Durability durability, Access access) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  try {
    write_file_atomically(file, text, durability, access);
  } catch (const Error& problem) {
    complain(problem.what());
  }
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
  write(study_.exps_dir / fmt::format("{}.json", names_.name(trial)), pretty(description(trial)), Durability::renamed);
}

// Puts the files of a trial in a folder of its name.
void DeepspeedOutput::keep(const host::TrialRecord& trial) {
  const fs::path source = study_.dir / "trials" / fmt::format("{}", trial.id);
  const fs::path target = study_.results_dir / names_.name(trial);
  std::error_code error;
  fs::remove_all(target, error);
  fs::create_directories(target, error);
  if (error) return complain(fmt::format("cannot make {}: {}", target.string(), error.message()));
  for (const char* file : kTrialFiles) {
    std::error_code none, linked;
    if (!fs::exists(source / file, none)) continue;
    fs::create_hard_link(source / file, target / file, linked);
    if (linked) fs::copy_file(source / file, target / file, error);
    if (error) complain(fmt::format("cannot write {}: {}", (target / file).string(), error.message()));
  }
  Json json = description(trial);
  json["result_dir"] = target.string();
  json["trial_dir"] = source.string();
  if (trial.outcome) json["outcome"] = host::to_string(*trial.outcome);
  json["reason"] = trial.reason;
  write(target / "exp.json", pretty(json), Durability::renamed);
}

void DeepspeedOutput::on_trial_submitted(const host::TrialRecord& trial) {
  for (const std::string& old : names_.forget_others(trial)) {
    std::error_code error;
    fs::remove(study_.exps_dir / fmt::format("{}.json", old), error);
    fs::remove_all(study_.results_dir / old, error);
  }
  describe(trial);
}

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
  write(study_.results_dir / "summary.txt", deepspeed_summary(record.value(), names_), Durability::synced);
  if (!record->best) return;
  write(study_.results_dir / "ds_config_optimal.json", pretty(record->best->config), Durability::synced);
  std::string command = try_read_file(study_.dir / "best_cmd.txt").bytes;
  const std::string own = fmt::format("/{}/best_ds_config.json", study_.dir.filename().string());
  constexpr const char* kOptimal = "/ds_config_optimal.json";
  if (study_.dir.parent_path() == study_.results_dir) {
    for (size_t at = command.find(own); at != std::string::npos; at = command.find(own, at)) {
      command.replace(at, own.size(), kOptimal);
    }
  }
  write(study_.results_dir / "cmd_optimal.txt", command, Durability::synced, Access::owner);
}

std::string DeepspeedOutput::place() const { return fmt::format("as DeepSpeed   {}", study_.results_dir.string()); }

std::unique_ptr<DeepspeedOutput> deepspeed_output(const fs::path& dir, Console& console) {
  auto study = read_deepspeed_study(dir);
  return study ? std::make_unique<DeepspeedOutput>(std::move(*study), console) : nullptr;
}

std::vector<fs::path> deepspeed_results(const DeepspeedStudy& study) {
  std::vector<fs::path> paths;
  const auto record = host::read_study(study.dir);
  if (!record.ok()) return paths;
  ExperimentNames names;
  for (const host::TrialRecord& trial : record->trials) {
    if (!is_experiment(trial)) continue;
    paths.push_back(study.results_dir / names.name(trial));
    paths.push_back(study.exps_dir / fmt::format("{}.json", names.name(trial)));
  }
  for (const char* file : {"summary.txt", "ds_config_optimal.json", "cmd_optimal.txt"}) {
    paths.push_back(study.results_dir / file);
  }
  return paths;
}

}  // namespace dsat::cli
