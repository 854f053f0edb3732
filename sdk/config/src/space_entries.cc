// Turns lists of the configuration and entries of the space file into SpaceEntry. Checks the type and range of each
// value, and drops repeated values.
#include "space_entries.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/world.h"
#include "known_keys.h"
#include "values.h"
#include "zero_values.h"

namespace dsat::config {
namespace {

[[noreturn]] void refuse(const std::string& origin, const std::string& what) { throw Error(origin + ": " + what); }

// Refuses keys whose values follow from others, and keys of the host.
void require_tunable(const std::string& key, const std::string& origin) {
  if (key == kTrainBatchKey) {
    refuse(origin, key + " follows from the micro batch and cannot be tuned; fix it with --global-batch, or tune " +
                       kMicroBatchKey);
  }
  // These keys decide how many devices share a batch. That is fixed before the study begins.
  for (const char* parallel : {"mp_size", "tensor_parallel.autotp_size", "tensor_parallel.tp_size",
                               "tensor_parallel.tp.tp_size", kSequenceParallelKey}) {
    if (key == parallel) refuse(origin, key + " changes the data-parallel size and cannot be tuned; give one value");
  }
  if (key == "autotuning" || key.rfind("autotuning.", 0) == 0) {
    refuse(origin, key + " is not a training option and cannot be tuned; remove it");
  }
}

Json checked_value(const std::string& key, const Json& value, const std::string& origin) {
  if (value.is_structured()) {
    refuse(origin, key + " may take single values only, not " + shown(value));
  }
  if (value == "auto") refuse(origin, key + ": \"auto\" is no value to try; name values");
  Json known;
  try {
    known = canonical_value(key, value);
  } catch (const Error& error) {
    refuse(origin, error.what());
  }
  if (key == kMicroBatchKey || key == kAccumulationKey) {
    const std::optional<int64_t> number = as_integer(value);
    if (!number || *number < 1) refuse(origin, key + " lists " + shown(value) + "; it must be a positive integer");
  }
  if (key == kPipelineStagesKey && as_integer(value).value_or(0) < 1) {
    refuse(origin, key + " lists " + shown(value) + "; it must be a positive integer");
  }
  // 5e8 is a float in JSON, but DeepSpeed's sizes are integers.
  if (const std::optional<int64_t> number = as_integer(known)) return *number;
  return known;
}

std::vector<Json> checked_values(const std::string& key, const Json& list, const std::string& origin) {
  if (!list.is_array()) refuse(origin, key + " is " + shown(list) + "; a list of values is wanted");
  std::vector<Json> values;
  std::unordered_set<std::string> seen;
  for (const Json& element : list) {
    Json value = checked_value(key, element, origin);
    if (seen.insert(identity(value)).second) values.push_back(std::move(value));
  }
  if (values.empty()) refuse(origin, key + " is an empty list; name at least one value");
  return values;
}

// {"range": [low, high]}: integers, "step" (1) apart, or with "log" each twice the one before. Both ends are values.
Json values_of_range(const std::string& key, const Json& body, const std::string& origin) {
  constexpr size_t kMostValues = 1000;
  const Json& range = body.at("range");
  const bool is_pair = range.is_array() && range.size() == 2;
  const auto low = is_pair ? as_integer(range[0]) : std::nullopt, high = is_pair ? as_integer(range[1]) : std::nullopt;
  if (!low || !high || *low >= *high) {
    refuse(origin, key + ": \"range\" is " + shown(range) + "; it must be two integers, the smaller first");
  }
  const Json log = body.value("log", Json(false));
  const auto step = as_integer(body.value("step", Json(1)));
  if (!log.is_boolean()) refuse(origin, key + ": \"log\" is " + shown(log) + "; it must be true or false");
  if (!step || *step < 1) refuse(origin, key + ": \"step\" is " + shown(body.at("step")) + "; it must be at least 1");
  if (log == true && (*low < 1 || body.contains("step"))) {
    refuse(origin, key + ": a \"log\" range begins at 1 or above and has no \"step\"");
  }
  Json values = Json::array();
  for (int64_t value = *low;; value += log == true ? value : *step) {
    values.push_back(value);
    if (values.size() == kMostValues) {
      refuse(origin, key + ": \"range\" has more than " + std::to_string(kMostValues) + " values; give a \"step\"");
    }
    const uint64_t left = static_cast<uint64_t>(*high) - static_cast<uint64_t>(value);
    if (left <= static_cast<uint64_t>(log == true ? value : *step)) break;
  }
  values.push_back(*high);
  return values;
}

void take_lists(Json& section, const std::string& prefix, const std::string& origin, std::vector<SpaceEntry>* out) {
  for (auto& [name, value] : section.items()) {
    const std::string key = prefix.empty() ? name : prefix + "." + name;
    const KeyKind kind = key_kind(key);
    if (kind == KeyKind::kSection && value.is_object() && key != "autotuning") {
      take_lists(value, key, origin, out);
    } else if (lists_are_axes(key) && value.is_array()) {
      require_tunable(key, origin);
      out->push_back({key, checked_values(key, value, origin), std::nullopt, origin});
      value = out->back().values.front();
    }
  }
}

// Refuses a key that cannot hold a value, and one that looks misspelt.
void require_settable(const std::string& key, const std::string& origin) {
  if (key.empty()) refuse(origin, "a key is empty; name a dotted key such as " + std::string(kStageKey));
  std::string section;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t dot = std::min(key.find('.', begin), key.size());
    const std::string name = key.substr(begin, dot - begin);
    const KeyKind kind = key_kind(key.substr(0, dot));
    const bool last = dot == key.size();
    if (kind == KeyKind::kFree && !last) return;
    if (kind == KeyKind::kUnknown) {
      const UnknownKey unknown = describe_unknown(section, name);
      if (unknown.suggestion.empty() && !unknown.refused) return;  // the user's own key
      if (unknown.suggestion.empty()) {
        refuse(origin, "unknown key '" + key + "': DeepSpeed refuses every key that it does not know in " + section);
      }
      refuse(origin, "unknown key '" + key + "'; did you mean '" + unknown.suggestion + std::string(key, dot) + "'?");
    }
    if (last && kind != KeyKind::kScalar) {
      if (kind == KeyKind::kList) refuse(origin, key + " is a list to DeepSpeed and cannot be tuned; remove it");
      const std::string other =
          key.find('.') != std::string::npos ? "" : "; a part of the command has another name, such as use_" + key;
      refuse(origin, key + " is a section of DeepSpeed's; name a key in it, dotted, such as " + kStageKey + other);
    }
    if (!last && kind != KeyKind::kSection) {
      refuse(origin, key + " is not a key: " + key.substr(0, dot) + " is not a section");
    }
    section = key.substr(0, dot);
    begin = dot + 1;
  }
}

std::vector<int> checked_stages(const std::string& key, const Json& list, const std::string& origin) {
  const char* const kWanted = "a list of ZeRO stages, 0 to 3";
  if (!list.is_array() || list.empty()) {
    refuse(origin, key + ": \"stages\" is " + shown(list) + "; it must be " + kWanted);
  }
  std::vector<int> stages;
  for (const Json& element : list) {
    const std::optional<int64_t> stage = as_integer(element);
    if (!stage || *stage < 0 || *stage > 3) {
      refuse(origin, key + ": \"stages\" lists " + shown(element) + "; it must be " + kWanted);
    }
    stages.push_back(static_cast<int>(*stage));
  }
  return stages;
}

// {"if": "mode == full"} or a list of such texts, and {"divides": 8}.
void read_conditions(const std::string& name, const Json& value, SpaceEntry& entry) try {
  if (name == "divides") return entry.conditions.push_back(parse_divides(entry.key, value));
  const Json texts = value.is_array() ? value : Json::array({value});
  const auto is_text = [](const Json& text) { return text.is_string(); };
  if (texts.empty() || !std::all_of(texts.begin(), texts.end(), is_text)) {
    throw Error(entry.key + ": \"if\" is " + shown(value) +
                "; it must be a text such as \"stage == 3\", or a list of them");
  }
  for (const Json& text : texts) entry.conditions.push_back(parse_if(entry.key, text.get<std::string>()));
} catch (const Error& error) {
  refuse(entry.origin, error.what());
}

SpaceEntry read_file_entry(const std::string& written, const Json& body, const std::string& origin) {
  require_settable(written, origin);
  const std::string key = canonical_key(written);
  require_tunable(key, origin);
  if (!body.is_object()) return {key, checked_values(key, body, origin), std::nullopt, origin};
  SpaceEntry entry;
  entry.key = key;
  entry.origin = origin;
  if (body.contains("range")) {
    if (body.contains("values")) refuse(origin, key + " has \"values\" and a \"range\"; keep one");
    entry.values = checked_values(key, values_of_range(key, body, origin), origin);
  }
  for (const auto& [name, value] : body.items()) {
    const bool is_of_range = body.contains("range") && (name == "range" || name == "step" || name == "log");
    if (is_of_range) continue;
    if (name == "values") {
      entry.values = checked_values(key, value, origin);
    } else if (name == "stages") {
      entry.stages = checked_stages(key, value, origin);
    } else if (name == "if" || name == "divides") {
      read_conditions(name, value, entry);
    } else {
      refuse(origin,
             key + " has a member '" + name +
                 "'; known are \"values\", \"range\" with \"step\" or \"log\", \"stages\", \"if\" and \"divides\"");
    }
  }
  if (entry.values.empty()) refuse(origin, key + " has no \"values\"; list them, or give a \"range\"");
  if ((entry.stages || !entry.conditions.empty()) && (key == kStageKey || key == kMicroBatchKey)) {
    refuse(origin, key + " holds for the whole study; remove " + (entry.stages ? "\"stages\"" : "its conditions"));
  }
  return entry;
}

}  // namespace

bool lists_are_axes(std::string_view key) { return key_kind(key) == KeyKind::kScalar; }

bool same_value(const Json& a, const Json& b) { return identity(a) == identity(b); }

std::vector<SpaceEntry> take_user_entries(Json& config, const std::string& origin) {
  std::vector<SpaceEntry> entries;
  if (!config.is_object()) throw Error(origin + " is " + shown(config) + ", not an object");
  const Json* section = find(config, "zero_optimization");
  if (section != nullptr && *section == "all") erase(config, "zero_optimization");
  const Json* stage = find(config, kStageKey);
  if (stage != nullptr && *stage == "all") erase(config, kStageKey);
  take_lists(config, "", origin, &entries);
  return entries;
}

std::vector<SpaceEntry> read_space_file(const Json& file, const std::string& origin) {
  std::vector<SpaceEntry> entries;
  if (file.is_null()) return entries;
  if (!file.is_object()) refuse(origin, "holds " + shown(file) + "; an object of dotted keys is wanted");
  for (const auto& [key, body] : file.items()) {
    if (key != "$schema") entries.push_back(read_file_entry(key, body, origin));  // editors read it
  }
  return entries;
}

}  // namespace dsat::config
