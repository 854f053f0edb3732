// An observation is JSON that docs/writing-a-searcher.md describes.
// Numbers of another type count as missing; a missing trial, configuration or outcome is an error.
#include "search/observation.h"

#include <fmt/format.h>

namespace dsat::search {
namespace {

std::optional<double> number(const Json& object, const std::string& name) {
  const Json value = object.is_object() ? object.value(name, Json()) : Json();
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

}  // namespace

std::optional<double> ObservedTrial::metric(const std::string& name) const { return number(metrics, name); }

std::optional<ObservedTrial> training_trial(const Json& observation) {
  for (const char* key : {"trial", "config", "outcome"}) {
    if (!observation.is_object() || !observation.contains(key)) {
      throw Error(fmt::format("an observation of the study has no '{}'", key));
    }
  }
  const Json metrics = observation.value("metrics", Json());
  if (metrics.is_object() && metrics.contains("num_params")) return std::nullopt;
  const std::optional<Outcome> outcome = outcome_named(observation.at("outcome").get<std::string>());
  if (!outcome || *outcome == Outcome::lost || *outcome == Outcome::stopped) return std::nullopt;
  return ObservedTrial{observation.at("trial").get<TrialId>(),
                       observation.at("config"),
                       *outcome,
                       metrics,
                       number(observation, "peak_bytes"),
                       number(observation, "peak_above_bytes"),
                       static_cast<int64_t>(number(observation, "allocator_retries").value_or(0))};
}

}  // namespace dsat::search
