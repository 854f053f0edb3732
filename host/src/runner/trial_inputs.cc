// Adds the protocol's section to a trial's configuration. The environment names the trial, its port and its devices.
#include "runner/trial_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "dsat/config/curriculum.h"
#include "dsat/config/json.h"
#include "dsat/config/json_numbers.h"
#include "outputs/flops_profiler_report.h"
#include "runner/trial_files.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

// In fp16, a step whose scaled gradients overflow updates nothing. With the usual first scale of 2^16 these are the
// first steps, which are all that a trial has. With 2^8 hardly any step overflows, and the few steps of a trial cannot
// halve it down to the usual minimum of 1, where DeepSpeed gives up. A larger minimum set by the user leaves no such
// room.
void begin_at_a_low_loss_scale(Json& config) {
  constexpr const char* kPower = "fp16.initial_scale_power";
  constexpr int kTrialPower = 8, kDefaultPower = 16;
  const Json* enabled = config::find(config, "fp16.enabled");
  if (enabled == nullptr || *enabled == false) return;  // "auto": the Trainer fills in only this key
  const bool is_dynamic = config::number_at(config, "fp16.loss_scale").value_or(0) == 0;
  const bool has_room = config::number_at(config, "fp16.min_loss_scale").value_or(1) <= 1;
  if (is_dynamic && has_room && config::number_at(config, kPower).value_or(kDefaultPower) > kTrialPower) {
    config::set(config, kPower, kTrialPower);
  }
}

constexpr const char* kCudaOrder = "CUDA_DEVICE_ORDER";

// By default CUDA counts the fastest device first, so indices given by the caller follow that order.
bool names_cuda_order(const Environment& caller) {
  const std::string devices = get_variable(caller, "CUDA_VISIBLE_DEVICES").value_or("");
  const size_t first = devices.find_first_not_of(' ');
  const bool are_indices = first != std::string::npos && devices[first] >= '0' && devices[first] <= '9';
  return are_indices || get_variable(caller, kCudaOrder).has_value();
}

// Returns the folders to which DeepSpeed swaps, by key.
std::vector<std::pair<std::string, fs::path>> own_swap_folders(const Json& config, const fs::path& trial_dir) {
  const std::string own =
      fmt::format("dsat-trial-{}-{:x}", trial_dir.filename().string(), std::hash<std::string>{}(trial_dir.string()));
  std::vector<std::pair<std::string, fs::path>> folders;
  for (const char* key :
       {"zero_optimization.offload_param.nvme_path", "zero_optimization.offload_optimizer.nvme_path"}) {
    const Json* path = config::find(config, key);
    if (path != nullptr && path->is_string()) folders.emplace_back(key, fs::path(path->get<std::string>()) / own);
  }
  return folders;
}

}  // namespace

Json trial_config(const TrialSpec& spec, const fs::path& trial_dir, const TrialMeasurement& measurement) {
  Json config = spec.config;
  if (!spec.has_train_batch) config.erase(config::kTrainBatchKey);
  if (asks_for_flops_report(config)) config["flops_profiler"]["output_file"] = (trial_dir / kFlopsReportFile).string();
  // A line is printed for every step (step_log.h), whatever the user's file says. DeepSpeed before 0.19.3 ignores the
  // second key.
  config["steps_per_print"] = 1;
  if (config.value("log_level", Json()) != "debug") config["log_level"] = "info";
  config::train_at_full_difficulty(config);  // a trial's few steps must need as much as the last steps
  begin_at_a_low_loss_scale(config);         // a trial's few steps must do the same as later steps
  for (const auto& [key, folder] : own_swap_folders(config, trial_dir)) config::set(config, key, folder.string());
  Json& section = config["autotuning"];
  if (!section.is_object()) section = Json::object();
  section["enabled"] = true;
  section["start_profile_step"] = measurement.start_profile_step;
  section["end_profile_step"] = measurement.end_profile_step + spec.further_steps;
  section["metric_path"] = (trial_dir / kMetricsFile).string();
  if (spec.model_info) {
    Json& info = section["model_info"];
    if (!info.is_object()) info = Json::object();
    info["profile"] = true;
    section["model_info_path"] = (trial_dir / kModelInfoFile).string();
  } else if (section.contains("model_info") && section["model_info"].is_object()) {
    section["model_info"]["profile"] = false;  // otherwise the engine exits after one forward pass
  }
  return config;
}

void remove_swap_folders(const Json& config, const fs::path& trial_dir) {
  for (const auto& [key, folder] : own_swap_folders(config, trial_dir)) {
    std::error_code ignored;  // a folder on another host is not here
    if (folder.is_absolute()) fs::remove_all(folder, ignored);
  }
}

Environment trial_variables(const TrialSpec& spec, const fs::path& trial_dir, uint16_t port, Backend backend,
                            const std::vector<Slot>& slots, const Environment& caller) {
  Environment variables;
  set_variable(variables, "DSAT_TRIAL_ID", fmt::to_string(spec.id));
  set_variable(variables, "DSAT_TRIAL_DIR", trial_dir.string());
  set_variable(variables, "DSAT_DS_CONFIG", (trial_dir / kConfigFile).string());
  set_variable(variables, "MASTER_PORT", fmt::to_string(port));
  // Python buffers lines that it writes to a file. The trial would seem silent, and would lose its last lines when it
  // is ended.
  if (!get_variable(caller, "PYTHONUNBUFFERED")) set_variable(variables, "PYTHONUNBUFFERED", "1");
  // On several hosts the launcher sets the devices of each host.
  const bool elsewhere = std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return !slot.host.empty(); });
  if (const char* name = visibility_variable(backend); name != nullptr && !elsewhere) {
    set_variable(variables, name, id_list(slots));
    if (backend == Backend::cuda && !names_cuda_order(caller)) {
      set_variable(variables, kCudaOrder, "PCI_BUS_ID");  // the order of nvidia-smi
    }
  }
  return variables;
}

Environment lone_rank(const Environment& caller) {
  const auto is_given = [&caller](const char* name) { return get_variable(caller, name).has_value(); };
  if (is_given("RANK") || is_given("LOCAL_RANK") || is_given("WORLD_SIZE")) return {};
  return {"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1"};
}

}  // namespace dsat::host
