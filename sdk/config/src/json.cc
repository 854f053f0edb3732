// Dotted keys, merging, and the text that identifies a configuration: sorted keys, whole floats as integers, nothing
// that only the tuner reads.
#include "dsat/config/json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "dsat/config/world.h"

namespace dsat::config {
namespace {

// Takes the first segment of a dotted key from `rest`. `last`: there is no further one.
std::string take_segment(std::string_view& rest, bool& last) {
  const size_t dot = rest.find('.');
  last = dot == std::string_view::npos;
  std::string segment(rest.substr(0, dot));
  rest = last ? std::string_view() : rest.substr(dot + 1);
  return segment;
}

// nlohmann::json sorts keys, so two spellings of one configuration become equal.
nlohmann::json normalised(const Json& value) {
  if (value.is_object()) {
    nlohmann::json out = nlohmann::json::object();
    for (const auto& [key, member] : value.items()) out[key] = normalised(member);
    return out;
  }
  if (value.is_array()) {
    nlohmann::json out = nlohmann::json::array();
    for (const Json& element : value) out.push_back(normalised(element));
    return out;
  }
  if (value.is_number_float()) {
    const double number = value.get<double>();
    // The bounds are exact powers of two, so the casts below are defined.
    if (number == std::floor(number) && number >= -0x1p63 && number < 0x1p64) {
      if (number < 0x1p63) return static_cast<int64_t>(number);
      return static_cast<uint64_t>(number);
    }
    return number;
  }
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_integer()) return value.get<int64_t>();
  return nullptr;
}

void collect_leaves(const Json& object, const std::string& prefix, std::vector<Leaf>& leaves) {
  for (const auto& item : object.items()) {
    const std::string key = prefix + item.key();
    if (item.value().is_object() && !item.value().empty()) {
      collect_leaves(item.value(), key + ".", leaves);
    } else {
      leaves.emplace_back(key, item.value());
    }
  }
}

}  // namespace

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

const Json* find(const Json& config, std::string_view key) {
  const Json* at = &config;
  for (bool last = false; !last;) {
    const std::string segment = take_segment(key, last);
    if (!at->is_object()) return nullptr;
    const auto member = at->find(segment);
    if (member == at->end()) return nullptr;
    at = &*member;
  }
  return at;
}

template <class T>
T whole_number(const Json& json) {
  using Limits = std::numeric_limits<T>;
  const bool is_negative = json.is_number_integer() && !json.is_number_unsigned() && json.get<int64_t>() < 0;
  const bool fits = is_negative
                        ? json.get<int64_t>() >= static_cast<int64_t>(Limits::min())
                        : json.is_number_integer() && json.get<uint64_t>() <= static_cast<uint64_t>(Limits::max());
  if (!fits) {
    throw Error(DSAT_DATA_LOSS,
                fmt::format("is {}, not a whole number from {} to {}", text_of(json), Limits::min(), Limits::max()));
  }
  return json.get<T>();
}
template int whole_number(const Json&);
template int64_t whole_number(const Json&);
template uint32_t whole_number(const Json&);
template uint64_t whole_number(const Json&);

void set(Json& config, std::string_view key, Json value) {
  const std::string whole(key);
  std::string walked;
  Json* at = &config;
  for (bool last = false; !last;) {
    // DeepSpeed reads null as "not given", so a section may replace it.
    if (at->is_null()) *at = Json::object();
    if (!at->is_object()) {
      throw Error("cannot set " + whole + ": " + (walked.empty() ? "the configuration" : walked) + " is " + at->dump() +
                  ", not a section in braces");
    }
    const std::string segment = take_segment(key, last);
    walked += (walked.empty() ? "" : ".") + segment;
    at = &(*at)[segment];
  }
  *at = std::move(value);
}

void erase(Json& config, std::string_view key) {
  Json* at = &config;
  for (bool last = false; !last;) {
    const std::string segment = take_segment(key, last);
    if (!at->is_object()) return;
    const auto member = at->find(segment);
    if (member == at->end()) return;
    if (last) {
      at->erase(segment);
      return;
    }
    at = &*member;
  }
}

void erase_with_sections(Json& config, std::string_view key) {
  erase(config, key);
  const size_t dot = key.rfind('.');
  if (dot == std::string_view::npos) return;
  const Json* section = find(config, key.substr(0, dot));
  if (section != nullptr && section->is_object() && section->empty()) erase_with_sections(config, key.substr(0, dot));
}

void overwrite(Json& base, const Json& source) {
  if (!source.is_object() || !base.is_object()) {
    base = source;
    return;
  }
  for (const auto& [key, value] : source.items()) {
    const auto member = base.find(key);
    if (member == base.end()) {
      base[key] = value;
    } else {
      overwrite(*member, value);
    }
  }
}

std::vector<Leaf> leaves_of(const Json& object) {
  std::vector<Leaf> leaves;
  if (object.is_object()) collect_leaves(object, "", leaves);
  return leaves;
}

std::string identity(const Json& config) {
  nlohmann::json sorted = normalised(config);
  if (sorted.is_object()) sorted.erase("autotuning");
  if (const std::optional<World> world = tuned_world(config)) {
    sorted["autotuning"] = {{"num_gpus", world->num_gpus}, {"num_nodes", world->num_nodes}};
  }
  // parse() returns UTF-8 only. A hand-made string with other bytes must not throw here.
  return sorted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace dsat::config
