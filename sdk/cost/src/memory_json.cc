// Reads the members that the cost model needs from a profile and from a study's observations. An error names the
// document and the member.
#include <cmath>
#include <string>

#include "dsat/base/utf8.h"
#include "dsat/cost/memory.h"

namespace dsat::cost {
namespace {

// The number at `key`; nullopt: absent or null.
std::optional<double> number(const Json& object, const char* key, const char* what) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return std::nullopt;
  if (!it->is_number()) throw Error(std::string(what) + ": '" + key + "' is " + it->dump() + "; write a number");
  return it->get<double>();
}

double required(const Json& object, const char* key, const char* what) {
  const std::optional<double> value = number(object, key, what);
  if (!value) throw Error(std::string(what) + ": '" + key + "' is missing; write a number");
  return *value;
}

std::optional<Interval> interval(const Json& object, const char* key, const char* what) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return std::nullopt;
  if (!it->is_object()) throw Error(std::string(what) + ": '" + key + "' is not {value, low, high}");
  return Interval{required(*it, "value", key), required(*it, "low", key), required(*it, "high", key)};
}

// A trial that measured the model's size ran one forward only, so its peak is no training peak.
bool measured_training(const Json& observation) {
  const auto metrics = observation.find("metrics");
  return metrics == observation.end() || !metrics->is_object() || !metrics->contains("activation_mem_per_gpu");
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

Json to_json(const Interval& interval) {
  return {{"value", finite(interval.value)}, {"low", finite(interval.low)}, {"high", finite(interval.high)}};
}

Inputs inputs_from_profile(const Json& profile) {
  const char* what = "profile";
  if (!profile.is_object()) throw Error("profile: it is not a JSON object");
  Inputs inputs;
  inputs.size.num_params = required(profile, "num_params", what);
  inputs.size.trainable_num_params = number(profile, "trainable_num_params", what).value_or(inputs.size.num_params);
  inputs.size.largest_layer_params = number(profile, "largest_layer_params", what).value_or(0);
  for (size_t i = 0; i < kSmallParameters.size(); ++i) {
    inputs.size.small_params[i] = number(profile, kSmallParameters[i].key, what).value_or(0);
  }
  const auto version = profile.find("deepspeed_version");
  if (version != profile.end() && version->is_string()) {
    inputs.size.deepspeed = engine_of_deepspeed(version->get<std::string>());
  }
  model_state_bytes(inputs.size, Setup());  // throws for an impossible size
  inputs.device_memory_bytes = number(profile, "device_memory_bytes", what);
  inputs.activation_bytes_per_sample = interval(profile, "activation_bytes_per_sample", what);
  inputs.fixed_bytes = interval(profile, "fixed_bytes", what);
  return inputs;
}

std::vector<Observation> observations_from_json(const Json& observations, int64_t data_parallel_size, Engine engine) {
  if (observations.is_null()) return {};
  if (!observations.is_array()) throw Error("observations: they are not a JSON array");
  std::vector<Observation> result;
  for (const Json& entry : observations) {
    if (!entry.is_object() || !entry.contains("config") || !entry.contains("outcome")) {
      throw Error("observations: an entry lacks 'config' or 'outcome': " + shortened(entry.dump(), 80));
    }
    const Json& outcome = entry["outcome"];
    Observation observation;
    observation.out_of_memory = outcome == "out_of_memory";
    if (!observation.out_of_memory && (outcome != "completed" || !measured_training(entry))) continue;
    observation.setup = setup_from_config(entry["config"], data_parallel_size, engine);
    observation.peak_bytes = number(entry, "peak_bytes", "observations");
    if (observation.peak_bytes == 0) observation.peak_bytes.reset();  // 0: unknown, as in dsat_exit
    result.push_back(observation);
  }
  return result;
}

}  // namespace dsat::cost
