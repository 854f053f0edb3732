// Each message says what the plugin's author has to correct.
#include "plugin/descriptor_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "dsat/base/utf8.h"

namespace dsat::host {
namespace {

bool kebab_case(const std::string& name) {
  if (name.empty() || name.front() == '-' || name.back() == '-') return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

bool of_type(const Json& value, const std::string& type) {
  if (type == "int") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "bool") return value.is_boolean();
  return value.is_string();
}

std::string check_choices(const Json& option, const std::string& name) {
  const Json choices = option.value("choices", Json());
  if (!choices.is_array() || choices.empty()) return fmt::format("option '{}' has no choices", name);
  const bool texts = std::all_of(choices.begin(), choices.end(), [](const Json& c) { return c.is_string(); });
  if (!texts) return fmt::format("option '{}' has a choice that is no string", name);
  if (std::find(choices.begin(), choices.end(), option["default"]) != choices.end()) return "";
  return fmt::format("option '{}' has a default that is none of its choices", name);
}

// Bounds are only for numbers. The default must be within them, because a plugin never gets a value outside.
std::string check_bounds(const Json& option, const std::string& name, const std::string& type) {
  for (const char* bound : {"min", "max"}) {
    if (!option.contains(bound)) continue;
    if (!option[bound].is_number()) return fmt::format("option '{}' has a {} that is no number", name, bound);
    if (type != "int" && type != "number") {
      return fmt::format("option '{}' has a {}, which is for int and number, not for {}; leave it out", name, bound,
                         type);
    }
  }
  const Json& standard = option["default"];
  const auto refuse = [&](const char* side, const char* bound) {
    return fmt::format("option '{}' has the default {}, {} its {} {}; change one of them", name, standard.dump(), side,
                       bound, option[bound].dump());
  };
  if (option.contains("min") && standard < option["min"]) return refuse("below", "min");
  if (option.contains("max") && standard > option["max"]) return refuse("above", "max");
  return "";
}

// Returns "" if people can read and type the name, else what is wrong.
std::string check_name(const std::string& name) {
  if (name.empty()) return "its name is empty";
  const std::string shown = printable_line(name);
  if (shown != name) {
    return fmt::format("its name '{}' has control characters, bytes that are not UTF-8, or a blank at its end", shown);
  }
  return name.find('/') == std::string::npos ? "" : fmt::format("its name '{}' has a '/'", name);
}

// Returns "" if the declared options follow the ABI, else what is wrong.
std::string check_options(const Json& options) {
  if (!options.is_array()) return "options_json is not an array";
  std::set<std::string> names;
  for (const Json& option : options) {
    if (!option.is_object() || !option.contains("name") || !option["name"].is_string()) return "an option has no name";
    const std::string name = option["name"];
    if (!kebab_case(name)) return fmt::format("option '{}' is not in kebab-case", name);
    const std::string type =
        option.contains("type") && option["type"].is_string() ? option["type"].get<std::string>() : "";
    const bool known = type == "int" || type == "number" || type == "bool" || type == "string" || type == "choice";
    if (!known) return fmt::format("option '{}' has no known type", name);
    if (!names.insert(name).second) return fmt::format("option '{}' is declared twice", name);
    if (!option.contains("default")) return fmt::format("option '{}' has no default", name);
    if (!of_type(option["default"], type)) return fmt::format("option '{}' has a default that is no {}", name, type);
    std::string problem = check_bounds(option, name, type);
    if (problem.empty() && type == "choice") problem = check_choices(option, name);
    if (!problem.empty()) return problem;
  }
  return "";
}

bool is_stage(const Json& value) { return value.is_number_integer() && value >= 0 && value <= 3; }

// Returns "" if the plugin's requirements on its study follow the ABI, else what is wrong.
std::string check_study(const Json& study, PluginKind kind) {
  if (!study.is_object()) return "study_json is no JSON object";
  if (kind == PluginKind::profiler && !study.empty()) return "study_json is for searchers, this is a profiler";
  for (const auto& item : study.items()) {
    const Json& value = item.value();
    if (item.key() == "zero_stages") {
      const bool stages = value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_stage);
      if (!stages) return "study_json: zero_stages is no list of ZeRO stages, 0 to 3";
    } else if (item.key() == "profile_trials") {
      const bool count = value.is_number_integer() && value >= 1 && value <= std::numeric_limits<int>::max();
      if (!count) return "study_json: profile_trials is no number of at least 1";
    } else {
      return fmt::format("study_json: '{}' is neither zero_stages nor profile_trials", item.key());
    }
  }
  return "";
}

}  // namespace

std::string problem_of(const PluginInfo& info) {
  std::string problem = check_name(info.name);
  if (problem.empty()) problem = check_options(info.options);
  return problem.empty() ? check_study(info.study, info.kind) : problem;
}

}  // namespace dsat::host
