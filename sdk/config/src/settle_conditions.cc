// A condition about the stage becomes a list of stages, one about a fixed number removes values. The others are tried
// with all values that their key may have.
#include "settle_conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dsat/config/batch.h"
#include "dsat/config/rules.h"
#include "values.h"

namespace dsat::config {
namespace {

class Settling {
 public:
  Settling(SpaceEntry& entry, const PossibleValues& possible) : entry_(entry), possible_(possible) {}

  std::vector<Condition> settle(const Json& usual, std::vector<std::string>& notices) {
    std::vector<Condition> open;
    for (Condition& condition : entry_.conditions) {
      condition.usual = usual;
      if (condition.key == kStageKey && condition.comparison != Comparison::divides) continue;
      if (condition.comparison == Comparison::divides) {
        if (keep_divisors(condition, notices)) open.push_back(condition);
      } else if (!is_decided(condition, notices)) {
        open.push_back(condition);
      }
    }
    keep_stages();
    return open;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}: {}: {}", entry_.origin, entry_.key, what));
  }

  // The values that the condition's key may have; nullopt: unknown.
  std::optional<std::vector<Json>> values_of(const Condition& condition) const {
    if (condition.key.empty()) return std::vector<Json>{condition.value};
    if (condition.key == entry_.key) refuse(fmt::format("its condition \"{}\" names the axis itself", condition.text));
    std::optional<std::vector<Json>> values = possible_(condition.key);
    if (values && values->empty()) {
      refuse(
          fmt::format("its condition \"{}\" names '{}', which neither the configuration nor the space has: name such "
                      "a key, or stage, micro_batch, accumulation or world_size",
                      condition.text, condition.key));
    }
    return values;
  }

  // Removes values that divide nothing. False: each value that is left divides whatever the number is.
  bool keep_divisors(const Condition& condition, std::vector<std::string>& notices) {
    const auto numbers = values_of(condition);
    if (!numbers) return true;
    bool is_open = false;
    std::vector<Json> kept;
    for (const Json& value : entry_.values) {
      const auto fits = [&](const Json& number) { return holds(condition, value, number); };
      if (std::none_of(numbers->begin(), numbers->end(), fits)) {
        notices.push_back(fmt::format("{}: {} {} is left out: it does not divide {}", entry_.origin, entry_.key,
                                      shown(value), name_of(condition, *numbers)));
        continue;
      }
      is_open = is_open || !std::all_of(numbers->begin(), numbers->end(), fits);
      kept.push_back(value);
    }
    if (kept.empty()) {
      refuse(fmt::format("no value of {} divides {}", shown(Json(entry_.values)), name_of(condition, *numbers)));
    }
    entry_.values = std::move(kept);
    return is_open;
  }

  static std::string name_of(const Condition& condition, const std::vector<Json>& numbers) {
    if (condition.key.empty() || numbers.size() != 1) return condition.text;
    return fmt::format("{} = {}", condition.text, shown(numbers.front()));
  }

  // Values at which conditions about a number begin or cease to hold.
  std::vector<Json> turning_points(const std::string& key) const {
    std::vector<Json> points;
    for (const Condition& condition : entry_.conditions) {
      if (condition.key != key || condition.comparison == Comparison::divides) continue;
      points.push_back(condition.value);
      if (!condition.value.is_number()) continue;
      for (const int by : {-1, 1}) points.emplace_back(condition.value.get<double>() + by);
    }
    return points;
  }

  // True: it holds for whatever value its key may have, or else for none, and then the axis keeps its usual value.
  bool is_decided(const Condition& condition, std::vector<std::string>& notices) {
    const bool is_known = values_of(condition).has_value();
    const std::vector<Json> values = is_known ? *values_of(condition) : turning_points(condition.key);
    std::vector<std::string> texts;
    const auto all_hold = [&](const Json& value) {
      return std::all_of(entry_.conditions.begin(), entry_.conditions.end(), [&](const Condition& other) {
        return other.key != condition.key || other.comparison == Comparison::divides || holds(other, nullptr, value);
      });
    };
    const bool is_fixed = is_known && values.size() == 1;
    if (std::none_of(values.begin(), values.end(), all_hold)) {
      for (const Condition& other : entry_.conditions) {
        if (other.key == condition.key && other.comparison != Comparison::divides) texts.push_back(other.text);
      }
      if (!is_fixed || texts.size() > 1) {
        refuse(fmt::format("no value of {} fits \"{}\"", condition.key, fmt::join(texts, "\" and \"")));
      }
      notices.push_back(fmt::format("{}: {} is not tuned: its condition \"{}\" does not hold, {} is {}", entry_.origin,
                                    entry_.key, condition.text, condition.key, shown(values.front())));
      entry_.values = {condition.usual};
      return true;
    }
    return is_fixed;
  }

  void keep_stages() {
    std::vector<std::string> texts;
    for (const Condition& condition : entry_.conditions) {
      if (condition.key != kStageKey || condition.comparison == Comparison::divides) continue;
      texts.push_back(condition.text);
      std::vector<int>& stages = entry_.stages.value();
      const auto fails = [&](int stage) { return !holds(condition, nullptr, stage); };
      stages.erase(std::remove_if(stages.begin(), stages.end(), fails), stages.end());
    }
    if (entry_.stages && entry_.stages->empty()) {
      refuse(fmt::format("no ZeRO stage fits \"{}\"", fmt::join(texts, "\" and \"")));
    }
  }

  SpaceEntry& entry_;
  const PossibleValues& possible_;
};

}  // namespace

std::vector<Condition> settle_conditions(SpaceEntry& entry, const Json& usual, const PossibleValues& possible,
                                         std::vector<std::string>& notices) {
  return Settling(entry, possible).settle(usual, notices);
}

}  // namespace dsat::config
