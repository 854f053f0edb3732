#include "zero_model/choice/read_observation.h"

#include <cmath>

namespace dsat::guided {
namespace {

std::optional<double> number(const Json& object, const std::string& name) {
  const Json value = object.is_object() ? object.value(name, Json()) : Json();
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

}  // namespace

std::optional<double> positive(std::optional<double> value) {
  return value && *value > 0 && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<Ended> ended_of(const Json& observation, const std::string& metric, Lattice& lattice) {
  const Json metrics = observation.value("metrics", Json());
  // One forward pass says nothing of a training step's memory or speed.
  if (metrics.is_object() && metrics.contains("num_params")) return std::nullopt;
  const std::string outcome = observation.at("outcome").get<std::string>();
  if (outcome != "completed" && outcome != "out_of_memory") return std::nullopt;
  const Json& config = observation.at("config");
  Ended ended;
  ended.trial = observation.at("trial").get<TrialId>();
  ended.point = {lattice.arm(config), config.value("train_micro_batch_size_per_gpu", int64_t{1})};
  ended.outcome = outcome == "completed" ? Outcome::completed : Outcome::out_of_memory;
  ended.metric = positive(number(metrics, metric));
  ended.forward = positive(number(metrics, "forward"));
  ended.backward = positive(number(metrics, "backward"));
  ended.step = positive(number(metrics, "step"));
  ended.peak_bytes = positive(number(observation, "peak_bytes"));
  return ended;
}

}  // namespace dsat::guided
