// Reads and checks conditions. Their words stand for dotted keys, except the world size, which no key has.
#include "dsat/config/conditions.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "dsat/config/batch.h"
#include "dsat/config/json.h"
#include "dsat/config/rules.h"
#include "dsat/config/world.h"
#include "values.h"

namespace dsat::config {
namespace {

// Longer ones first, since they begin with the others.
constexpr std::array<std::pair<const char*, Comparison>, 7> kOperators{{{"==", Comparison::equal},
                                                                        {"!=", Comparison::unequal},
                                                                        {"<=", Comparison::at_most},
                                                                        {">=", Comparison::at_least},
                                                                        {"<", Comparison::below},
                                                                        {">", Comparison::above},
                                                                        {"divides", Comparison::divides}}};
constexpr std::pair<const char*, const char*> kWords[] = {
    {"stage", kStageKey}, {"micro_batch", kMicroBatchKey}, {"accumulation", kAccumulationKey}};

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

const char* operator_of(Comparison comparison) {
  for (const auto& [name, one] : kOperators) {
    if (one == comparison) return name;
  }
  return "";
}

Comparison comparison_of(const std::string& name) {
  for (const auto& [known, comparison] : kOperators) {
    if (name == known) return comparison;
  }
  throw Error(fmt::format("the space: '{}' is no comparison", name));
}

std::string key_of(const std::string& word) {
  for (const auto& [name, key] : kWords) {
    if (word == name) return key;
  }
  return word;
}

Json value_of(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

bool divides(const Json& axis, const Json& number) {
  const auto part = as_integer(axis), whole = as_integer(number);
  return part && whole && *part >= 1 && *whole % *part == 0;
}

bool compares(const Json& left, Comparison comparison, const Json& right) {
  const bool is_equal = identity(left) == identity(right);
  if (comparison == Comparison::equal) return is_equal;
  if (comparison == Comparison::unequal) return !is_equal;
  if (!left.is_number() || !right.is_number()) return false;
  const double a = left.get<double>(), b = right.get<double>();
  switch (comparison) {
    case Comparison::below:
      return a < b;
    case Comparison::at_most:
      return a <= b;
    case Comparison::above:
      return a > b;
    default:
      return a >= b;
  }
}

// Returns the value that a condition names in a configuration; null: there is none.
Json named_in(const Json& config, const Condition& condition, std::optional<int64_t> world_size) {
  if (condition.key.empty()) return condition.value;
  if (condition.key == kStageKey) return zero_stage(config);
  if (condition.key == kWorldSizeWord) {
    if (const auto own = tuned_world(config)) return own->size();
    return world_size ? Json(*world_size) : Json();
  }
  const Json* value = find(config, condition.key);
  return value != nullptr ? *value : Json();
}

}  // namespace

Condition parse_if(const std::string& axis, const std::string& text) {
  size_t at = std::string::npos;
  std::pair<const char*, Comparison> found;
  for (const auto& one : kOperators) {
    if (one.second == Comparison::divides) continue;
    const size_t place = text.find(one.first);
    if (place < at) at = place, found = one;
  }
  Condition condition;
  if (at != std::string::npos) {
    const std::string value = trimmed(std::string_view(text).substr(at + std::string_view(found.first).size()));
    condition = {axis, key_of(trimmed(text.substr(0, at))), found.second, value_of(value), {}, text};
    if (!condition.key.empty() && !value.empty() && !condition.value.is_structured()) return condition;
  }
  throw Error(fmt::format("{}: \"if\" is {}; write it as \"stage == 3\", with one of == != < <= > >=", axis,
                          shown(Json(text))));
}

Condition parse_divides(const std::string& axis, const Json& number) {
  Condition condition{axis, "", Comparison::divides, number, {}, shown(number)};
  if (number.is_string() && !number.get_ref<const std::string&>().empty()) {
    const std::string word = number.get<std::string>();
    condition.key = key_of(word);
    condition.value = nullptr;
    condition.text = word;
  } else if (as_integer(number).value_or(0) < 1) {
    throw Error(
        fmt::format("{}: \"divides\" is {}; name a positive integer, world_size or a key", axis, shown(number)));
  }
  return condition;
}

std::string describe(const Condition& condition) {
  return fmt::format("{} {}", condition.comparison == Comparison::divides ? "divides" : "only if", condition.text);
}

bool holds(const Condition& condition, const Json& axis, const Json& named) {
  if (condition.comparison == Comparison::divides) return divides(axis, named);
  return compares(named, condition.comparison, condition.value);
}

std::optional<std::string> broken_condition(const std::vector<Condition>& conditions, const Json& config,
                                            std::optional<int64_t> world_size, bool with_micro_batch) {
  for (const Condition& condition : conditions) {
    const Json* value = find(config, condition.axis);
    const bool is_divisor = condition.comparison == Comparison::divides;
    if (value == nullptr || (!is_divisor && identity(*value) == identity(condition.usual))) continue;
    if (!with_micro_batch && condition.key == kMicroBatchKey) continue;
    if (holds(condition, *value, named_in(config, condition, world_size))) continue;
    return is_divisor ? fmt::format("{} is {}, which does not divide {}", condition.axis, shown(*value), condition.text)
                      : fmt::format("{} is {}, but only if {}", condition.axis, shown(*value), condition.text);
  }
  return std::nullopt;
}

Json to_json(const Condition& condition) {
  return {{"axis", condition.axis},   {"key", condition.key},     {"comparison", operator_of(condition.comparison)},
          {"value", condition.value}, {"usual", condition.usual}, {"text", condition.text}};
}

Condition condition_from_json(const Json& json) {
  return {json.at("axis").get<std::string>(),
          json.at("key").get<std::string>(),
          comparison_of(json.at("comparison").get<std::string>()),
          json.at("value"),
          json.at("usual"),
          json.at("text").get<std::string>()};
}

}  // namespace dsat::config
