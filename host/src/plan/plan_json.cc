// Visitors of the settings' tables write and read a plan; plugins, slots and simulation are handled separately. Only
// decisions are written; everything else is derived again.
#include <fmt/format.h>

#include <type_traits>

#include "base/guarded.h"
#include "dsat/config/json.h"
#include "plan/plan.h"
#include "record/shown_settings.h"
#include "sim/load_simulation.h"

namespace dsat::host {
namespace {

using std::chrono::milliseconds;
using Paths = std::vector<std::filesystem::path>;

Error unreadable(const std::string& why) { return internal_error("the journal's plan cannot be read: " + why); }

// The JSON form of a value, in both directions. Other types have their own JSON form.
template <class T>
struct Form {
  static Json write(const T& value) { return Json(value); }
  static T read(const Json& json) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      return config::whole_number<T>(json);
    } else {
      return json.get<T>();
    }
  }
};
template <>
struct Form<milliseconds> {
  static Json write(milliseconds time) { return Json(time.count()); }
  static milliseconds read(const Json& json) { return milliseconds(config::whole_number<int64_t>(json)); }
};
template <>
struct Form<std::filesystem::path> {
  static Json write(const std::filesystem::path& path) { return Json(path.string()); }
  static std::filesystem::path read(const Json& json) { return json.get<std::string>(); }
};
template <>
struct Form<Paths> {
  static Json write(const Paths& paths) {
    Json list = Json::array();
    for (const std::filesystem::path& path : paths) list.push_back(path.string());
    return list;
  }
  static Paths read(const Json& json) {
    const auto texts = json.get<std::vector<std::string>>();
    return Paths(texts.begin(), texts.end());
  }
};
template <>
struct Form<std::vector<int>> {
  static Json write(const std::vector<int>& numbers) { return Json(numbers); }
  static std::vector<int> read(const Json& json) {
    std::vector<int> numbers;
    // The loop needs a vector, because a plain loop over a JSON value that is no list visits the value itself.
    for (const Json& number : json.get<std::vector<Json>>()) numbers.push_back(config::whole_number<int>(number));
    return numbers;
  }
};
template <>
struct Form<TrialCwd> {
  static Json write(TrialCwd cwd) { return cwd == TrialCwd::copy ? "copy" : "keep"; }
  static TrialCwd read(const Json& json) { return json == "copy" ? TrialCwd::copy : TrialCwd::keep; }
};
template <>
struct Form<Backend> {
  static Json write(Backend backend) { return static_cast<int>(backend); }
  static Backend read(const Json& json) { return static_cast<Backend>(config::whole_number<int>(json)); }
};
template <class T>
struct Form<std::optional<T>> {
  static Json write(const std::optional<T>& value) { return value ? Form<T>::write(*value) : Json(); }
  static std::optional<T> read(const Json& json) {
    return json.is_null() ? std::nullopt : std::optional<T>(Form<T>::read(json));
  }
};

struct WriteJson {
  Json& json;
  template <class T>
  void operator()(const Setting& setting, const T& value) const {
    json[setting.key] = Form<T>::write(value);
  }
};

struct ReadJson {
  const Json& json;
  template <class T>
  void operator()(const Setting& setting, T& value) const {
    const auto it = json.find(setting.key);
    if (it == json.end() && setting.is_later) return;
    if (it == json.end()) throw unreadable(fmt::format("it has no '{}'", setting.key));
    const auto refuse = [&] { return unreadable(fmt::format("its '{}' is {}", setting.key, it->dump())); };
    try {
      value = Form<T>::read(*it);
    } catch (const Json::exception&) {
      throw refuse();
    } catch (const Error&) {
      throw refuse();
    }
  }
};

template <class Self, class Visitor>
void visit_slot(Self& slot, Visitor&& visitor) {
  visitor(Setting{"id"}, slot.id);
  visitor(Setting{"ordinal"}, slot.ordinal);
  visitor(Setting{"memory_bytes"}, slot.memory_bytes);
  visitor(Setting{"host"}, slot.host);
  visitor(Setting{"uuid"}, slot.uuid);
}

// All but the list of slots.
template <class Self, class Visitor>
void visit_slots(Self& slots, Visitor&& visitor) {
  visitor(Setting{"backend"}, slots.backend);
  visitor(Setting{"slots_per_trial"}, slots.slots_per_trial);
  visitor(Setting{"device_memory_bytes"}, slots.device_memory_bytes);
  visitor(Setting{"hostfile"}, slots.hostfile);
  visitor(Setting{"shape"}, slots.shape.node_slots);
  visitor(Setting{"num_gpus"}, slots.num_gpus);
  visitor(Setting{"num_nodes"}, slots.num_nodes);
  visitor(Setting{"size_is_ours"}, slots.size_is_ours);
  visitor(Setting{"filtered"}, slots.filtered);
  visitor(Setting{"at_once"}, slots.at_once);
  visitor(Setting{"placements"}, slots.placements);
}

Json to_json(const SlotPlan& slots) {
  Json list = Json::array();
  for (const Slot& slot : slots.slots) {
    Json entry = Json::object();
    visit_slot(slot, WriteJson{entry});
    list.push_back(std::move(entry));
  }
  Json json{{"slots", std::move(list)}};
  visit_slots(slots, WriteJson{json});
  return json;
}

SlotPlan slots_from_json(const Json& json) {
  SlotPlan plan;
  for (const Json& entry : json.at("slots")) visit_slot(plan.slots.emplace_back(), ReadJson{entry});
  visit_slots(plan, ReadJson{json});
  return plan;
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

// Returns the plugin at that time; load_plugin() checks whether it is still the same.
StrategyPlan strategy_from_json(const Json& json, PluginKind kind) {
  StrategyPlan plan;
  plan.plugin.file = json.at("file").get<std::string>();
  plan.plugin.kind = kind;
  plan.plugin.id = json.at("id").get<std::string>();
  plan.plugin.name = json.at("name").get<std::string>();
  plan.plugin.version = json.at("version").get<std::string>();
  ReadJson{json}(Setting{"state_version"}, plan.plugin.state_version);
  plan.journalled_state_version = plan.plugin.state_version;
  plan.options = json.at("options");
  plan.sha256 = json.at("sha256").get<std::string>();
  return plan;
}

// Derives space and base configuration without their notices, which were given when the study was started.
void derive_again(Plan& plan, int64_t data_parallel_size) {
  const std::vector<std::string> notices = plan.notices;
  try {
    derive_space(plan, data_parallel_size);
  } catch (const Error& error) {
    throw unreadable(error.what());
  }
  plan.notices = notices;
}

}  // namespace

Json settings_to_json(const Plan& plan) {
  Json json = Json::object();
  Plan::visit(plan, WriteJson{json});
  return json;
}

void read_settings(const Json& json, Plan& plan) { Plan::visit(plan, ReadJson{json}); }

Json to_json(const Plan& plan) {
  Json json = settings_to_json(plan);
  json["runner"] = plan.simulation ? "sim" : plan.runner;
  json["simulation"] = plan.simulation ? plan.simulation->source : Json();
  json["slots"] = to_json(plan.slots);
  json["data_parallel_size"] = plan.data_parallel_size;
  json["profiler"] = to_json(plan.profiler);
  json["searcher"] = to_json(plan.searcher);
  return json;
}

Plan plan_from_json(const Json& json) {
  if (!json.is_object()) throw unreadable("it is no JSON object");
  try {
    Plan plan;
    read_settings(json, plan);
    plan.runner = json.at("runner").get<std::string>();
    if (plan.runner == "sim") plan.simulation = sim::simulation_from_source(json.at("simulation"));
    plan.slots = slots_from_json(json.at("slots"));
    plan.profiler = strategy_from_json(json.at("profiler"), PluginKind::profiler);
    plan.searcher = strategy_from_json(json.at("searcher"), PluginKind::searcher);
    int64_t data_parallel_size = 1;
    ReadJson{json}(Setting{"data_parallel_size"}, data_parallel_size);
    derive_again(plan, data_parallel_size);
    return plan;
  } catch (const Json::exception&) {
    throw unreadable("its slots, plugins or simulation have another form than in this version");
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
       {"user_config", "maximise", "space_file", "hugging_face", "precision", "simulation", "config_by_environment"}) {
    settings.erase(inner);
  }
  return shown_settings(std::move(settings));
}

}  // namespace dsat::host
