// Reads the JSON of observations (docs/writing-a-searcher.md). A number of another type counts as missing; a missing
// trial, configuration or outcome is an error.
#include "search/observation.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/cost/setup.h"

namespace dsat::search {
namespace {

std::optional<double> number(const Json& object, const std::string& name) {
  const Json value = object.is_object() ? object.value(name, Json()) : Json();
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

// The micro batch of a configuration; nullopt: the cost model cannot read the configuration.
std::optional<int64_t> readable_micro_batch(const Json& config, int64_t data_parallel_size) {
  try {
    return cost::setup_from_config(config, data_parallel_size).micro_batch;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<ObservedTrial> training_trial(const Json& observation, int64_t data_parallel_size) {
  for (const char* key : {"trial", "config", "outcome"}) {
    if (!observation.is_object() || !observation.contains(key)) {
      throw Error(fmt::format("an observation of the study has no '{}'", key));
    }
  }
  const Json metrics = observation.value("metrics", Json());
  if (metrics.is_object() && metrics.contains("num_params")) return std::nullopt;
  const std::optional<Outcome> outcome = outcome_named(observation.at("outcome").get<std::string>());
  if (!outcome || *outcome == Outcome::lost || *outcome == Outcome::stopped) return std::nullopt;
  const Json& config = observation.at("config");
  const std::optional<int64_t> micro_batch = readable_micro_batch(config, data_parallel_size);
  if (!micro_batch) return std::nullopt;
  return ObservedTrial{observation.at("trial").get<TrialId>(),
                       config,
                       *micro_batch,
                       *outcome,
                       metrics,
                       number(observation, "peak_bytes"),
                       number(observation, "peak_above_bytes"),
                       static_cast<int64_t>(number(observation, "allocator_retries").value_or(0))};
}

}  // namespace

std::optional<double> ObservedTrial::metric(const std::string& name) const { return number(metrics, name); }

std::vector<ObservedTrial> training_trials(const Study& study) {
  const int64_t data_parallel_size = std::max<int64_t>(1, study.limits.data_parallel_size);
  std::vector<ObservedTrial> trials;
  for (const Json& observation : study.observations) {
    if (auto trial = training_trial(observation, data_parallel_size)) trials.push_back(*std::move(trial));
  }
  return trials;
}

}  // namespace dsat::search
