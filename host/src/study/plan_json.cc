// A plan as the journal keeps it. Only what was decided is written; what follows from it is derived again.
#include <algorithm>

#include "base/sha256.h"
#include "dsat/config/json.h"
#include "sim/load_simulation.h"
#include "study/plan.h"

namespace dsat::host {
namespace {

using std::chrono::milliseconds;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
std::optional<T> optional_at(const Json& json, const char* key) {
  if (json.at(key).is_null()) return std::nullopt;
  return json[key].get<T>();
}

Json to_json(const StrategyPlan& plan) {
  return {{"file", plan.plugin.file.string()},
          {"id", plan.plugin.id},
          {"name", plan.plugin.name},
          {"version", plan.plugin.version},
          {"state_version", plan.plugin.state_version},
          {"sha256", plan.sha256},
          {"options", plan.options}};
}

Json to_json(const SlotPlan& slots) {
  Json list = Json::array();
  for (const Slot& slot : slots.slots) {
    list.push_back({{"id", slot.id},
                    {"ordinal", or_null(slot.ordinal)},
                    {"memory_bytes", or_null(slot.memory_bytes)},
                    {"host", slot.host}});
  }
  return {{"backend", static_cast<int>(slots.backend)},
          {"slots_per_trial", slots.slots_per_trial},
          {"slots", list},
          {"device_memory_bytes", or_null(slots.device_memory_bytes)},
          {"hostfile", slots.hostfile.string()},
          {"shape", slots.shape.node_slots},
          {"num_gpus", slots.num_gpus},
          {"num_nodes", slots.num_nodes},
          {"size_is_ours", slots.size_is_ours},
          {"filtered", slots.filtered},
          {"at_once", slots.at_once},
          {"placements", slots.placements}};
}

SlotPlan slots_from_json(const Json& json) {
  SlotPlan plan;
  plan.backend = static_cast<Backend>(json.at("backend").get<int>());
  plan.slots_per_trial = json.at("slots_per_trial").get<int>();
  for (const Json& slot : json.at("slots")) {
    plan.slots.push_back({slot.at("id").get<std::string>(), optional_at<int>(slot, "ordinal"),
                          optional_at<uint64_t>(slot, "memory_bytes"), slot.value("host", "")});
  }
  plan.device_memory_bytes = optional_at<uint64_t>(json, "device_memory_bytes");
  // Older journals know one machine and trials that are all alike.
  plan.hostfile = json.value("hostfile", "");
  plan.shape.node_slots = json.value("shape", std::vector<int>{plan.slots_per_trial});
  plan.num_gpus = json.value("num_gpus", std::vector<int>());
  plan.num_nodes = json.value("num_nodes", std::vector<int>());
  plan.size_is_ours = json.value("size_is_ours", false);
  plan.filtered = json.value("filtered", false);
  plan.at_once = json.value("at_once", static_cast<int>(plan.slots.size()) / std::max(1, plan.slots_per_trial));
  plan.placements = json.value("placements", std::vector<std::string>());
  return plan;
}

// The plugin as it is now, with the options of then.
Result<StrategyPlan> strategy_from_json(const Json& json, PluginKind kind, std::vector<std::string>& notices) {
  Result<PluginInfo> plugin = find_strategy(json.at("file").get<std::string>(), kind);
  if (!plugin.ok()) return plugin.status();
  StrategyPlan plan{std::move(plugin).value(), json.at("options"), json.at("state_version").get<uint32_t>(), ""};
  const std::string id = json.at("id").get<std::string>();
  if (plan.plugin.id != id) {
    return Status::invalid("plugin " + plan.plugin.file.string() + ": is now " + plan.plugin.id +
                           ", the study was started with " + id + "; put that one back");
  }
  plan.sha256 = sha256_of_file(plan.plugin.file);
  if (plan.sha256 != json.at("sha256").get<std::string>()) {
    notices.push_back("plugin " + plan.plugin.file.string() + " has changed since the study was started (" +
                      json.at("version").get<std::string>() + " then, " + plan.plugin.version + " now)");
  }
  return plan;
}

// Absent in the journals of versions that knew no experiment files.
void read_experiment(const Json& json, Plan& plan) {
  for (const Json& include : json.value("includes", Json::array()))
    plan.includes.emplace_back(include.get<std::string>());
  plan.config_by_environment = json.value("config_by_environment", false);
  plan.variables = json.value("variables", std::vector<std::string>());
  plan.hyperparameters = json.value("hyperparameters", Json());
  plan.experiment = json.value("experiment", Json());
}

Json paths_as_json(const std::vector<std::filesystem::path>& paths) {
  Json list = Json::array();
  for (const std::filesystem::path& path : paths) list.push_back(path.string());
  return list;
}

Result<Plan> read(const Json& json) {
  Plan plan;
  plan.name = json.at("name").get<std::string>();
  plan.cwd = json.at("cwd").get<std::string>();
  plan.command = json.at("command").get<std::vector<std::string>>();
  if (json.value("runner", "local") == "sim") {
    Result<Simulation> simulation = sim::simulation_from_source(json.at("simulation"));
    if (!simulation.ok()) return simulation.status();
    plan.simulation = std::move(simulation).value();
  }
  plan.config_file = json.at("config_file").get<std::string>();
  plan.user_config = json.at("user_config");
  plan.space_file = json.at("space_file");
  plan.arg_mappings = json.at("arg_mappings").get<std::vector<std::pair<std::string, std::string>>>();
  plan.hugging_face = json.at("hugging_face").get<bool>();
  plan.trial_cwd = json.at("trial_cwd") == "copy" ? TrialCwd::copy : TrialCwd::keep;
  read_experiment(json, plan);
  plan.seed = json.at("seed").get<uint64_t>();
  plan.metric = json.at("metric").get<std::string>();
  plan.maximise = json.at("maximise").get<bool>();
  plan.zero_stages = json.at("zero_stages").get<std::vector<int>>();
  plan.start_profile_step = json.at("start_profile_step").get<int>();
  plan.end_profile_step = json.at("end_profile_step").get<int>();
  plan.max_trials = json.at("max_trials").get<int>();
  plan.max_concurrent_trials = json.at("max_concurrent_trials").get<int>();
  plan.max_slots = optional_at<int>(json, "max_slots");
  plan.slots = slots_from_json(json.at("slots"));
  plan.device_memory_bytes = optional_at<uint64_t>(json, "device_memory_bytes");
  plan.global_batch = optional_at<int64_t>(json, "global_batch");
  plan.max_train_batch_size = optional_at<int64_t>(json, "max_train_batch_size");
  plan.max_micro_batch = optional_at<int64_t>(json, "max_micro_batch");
  plan.min_micro_batch = json.at("min_micro_batch").get<int64_t>();
  plan.default_axes = json.value("default_axes", true);
  if (json.contains("early_stopping")) plan.early_stopping = optional_at<int>(json, "early_stopping");
  plan.profile_trials = json.at("profile_trials").get<int>();
  plan.trial_timeout = milliseconds(json.at("trial_timeout_ms").get<int64_t>());
  plan.no_progress_timeout = milliseconds(json.at("no_progress_timeout_ms").get<int64_t>());
  if (const auto budget = optional_at<int64_t>(json, "time_budget_ms")) plan.time_budget = milliseconds(*budget);
  Result<StrategyPlan> profiler = strategy_from_json(json.at("profiler"), PluginKind::profiler, plan.notices);
  if (!profiler.ok()) return profiler.status();
  plan.profiler = std::move(profiler).value();
  Result<StrategyPlan> searcher = strategy_from_json(json.at("searcher"), PluginKind::searcher, plan.notices);
  if (!searcher.ok()) return searcher.status();
  plan.searcher = std::move(searcher).value();
  const std::vector<std::string> notices = plan.notices;
  derive_space(plan, json.at("data_parallel_size").get<int64_t>());
  plan.notices = notices;  // the rest was said when the study was started
  return plan;
}

}  // namespace

Json to_json(const Plan& plan) {
  return {{"name", plan.name},
          {"runner", plan.simulation ? "sim" : "local"},
          {"simulation", plan.simulation ? plan.simulation->source : Json()},
          {"cwd", plan.cwd.string()},
          {"command", plan.command},
          {"config_file", plan.config_file.string()},
          {"user_config", plan.user_config},
          {"space_file", plan.space_file},
          {"arg_mappings", plan.arg_mappings},
          {"hugging_face", plan.hugging_face},
          {"trial_cwd", plan.trial_cwd == TrialCwd::copy ? "copy" : "keep"},
          {"includes", paths_as_json(plan.includes)},
          {"config_by_environment", plan.config_by_environment},
          {"variables", plan.variables},
          {"hyperparameters", plan.hyperparameters},
          {"experiment", plan.experiment},
          {"seed", plan.seed},
          {"metric", plan.metric},
          {"maximise", plan.maximise},
          {"zero_stages", plan.zero_stages},
          {"start_profile_step", plan.start_profile_step},
          {"end_profile_step", plan.end_profile_step},
          {"max_trials", plan.max_trials},
          {"max_concurrent_trials", plan.max_concurrent_trials},
          {"max_slots", or_null(plan.max_slots)},
          {"slots", to_json(plan.slots)},
          {"data_parallel_size", plan.data_parallel_size},
          {"device_memory_bytes", or_null(plan.device_memory_bytes)},
          {"global_batch", or_null(plan.global_batch)},
          {"max_train_batch_size", or_null(plan.max_train_batch_size)},
          {"max_micro_batch", or_null(plan.max_micro_batch)},
          {"min_micro_batch", plan.min_micro_batch},
          {"default_axes", plan.default_axes},
          {"early_stopping", or_null(plan.early_stopping)},
          {"profile_trials", plan.profile_trials},
          {"trial_timeout_ms", plan.trial_timeout.count()},
          {"no_progress_timeout_ms", plan.no_progress_timeout.count()},
          {"time_budget_ms", plan.time_budget ? Json(plan.time_budget->count()) : Json()},
          {"profiler", to_json(plan.profiler)},
          {"searcher", to_json(plan.searcher)}};
}

Result<Plan> plan_from_json(const Json& json) {
  try {
    return read(json);
  } catch (const std::exception& e) {
    return Status::internal(std::string("the journal's plan cannot be read: ") + e.what());
  }
}

Json settings_of(const Plan& plan) {
  Json settings = to_json(plan);
  settings["direction"] = plan.maximise ? "maximize" : "minimize";
  settings["slots_per_trial"] = plan.slots.slots_per_trial;
  Json slots = Json::array();
  for (const Slot& slot : plan.slots.slots) slots.push_back(slot.name());
  settings["slots"] = std::move(slots);
  Json stages = Json::array();
  for (const config::StageSpace& stage : plan.space.stages) stages.push_back(stage.stage);
  settings["zero_stages"] = std::move(stages);
  settings["base_config"] = plan.base_config;
  for (const char* inner :
       {"user_config", "maximise", "space_file", "hugging_face", "simulation", "config_by_environment"})
    settings.erase(inner);
  return settings;
}

}  // namespace dsat::host
